{#- Drop from the state table what the staged rows mark as gone. -#}
{% macro mv_delete_from(args) -%}
  {%- set dispatch = adapter.dispatch -%}
  {{ return(dispatch('mv_delete_from', 'dbt_spark_mv' if context.get('dbt_spark_mv') else 'dbt')(args)) }}
{%- endmacro %}

{% macro default__mv_delete_from(args) -%}
merge into {{ args['relation'] }} t
using (select * from {{ args['stage'] }} where __mv_op = 'D') s
on {% for key in args['keys'] %}t.{{ adapter.quote(key) }} = s.{{ adapter.quote(key) }}{{ ' and ' if not loop.last }}{% endfor %}
when matched then delete
{%- endmacro %}
