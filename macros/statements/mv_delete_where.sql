{#- Publish the going of rows that the table's own columns tell: files that hold no such row are not read, files that hold
    no other are dropped, in the rest the rows are marked in deletion vectors. -#}
{% macro mv_delete_where(args) -%}
  {%- set dispatch = adapter.dispatch -%}
  {{ return(dispatch('mv_delete_where', 'dbt_spark_mv' if context.get('dbt_spark_mv') else 'dbt')(args)) }}
{%- endmacro %}

{% macro default__mv_delete_where(args) -%}
delete from {{ args['relation'] }}
where {{ args['predicate'] }}
{%- endmacro %}
