{#- Nothing to write, but the sources moved on: a commit without data carries the new bookkeeping, so that the next run
    finds nothing to do. (Delta makes no commit for a MERGE or INSERT that affects no row.) -#}
{% macro mv_record_only(args) -%}
  {%- set dispatch = adapter.dispatch -%}
  {{ return(dispatch('mv_record_only', 'dbt_spark_mv' if context.get('dbt_spark_mv') else 'dbt')(args)) }}
{%- endmacro %}

{% macro default__mv_record_only(args) -%}
alter table {{ args['relation'] }} set tblproperties ('spark_mv.checked' = '{{ invocation_id }}')
{%- endmacro %}
