{#- Rows staged as new whose key the table has already: the query gives two rows of one key. -#}
{% macro mv_check_new(args) -%}
  {%- set dispatch = adapter.dispatch -%}
  {{ return(dispatch('mv_check_new', 'dbt_spark_mv' if context.get('dbt_spark_mv') else 'dbt')(args)) }}
{%- endmacro %}

{% macro default__mv_check_new(args) -%}
select
  count(*) as duplicate_keys,
  min(to_json(named_struct({% for key in args['keys'] %}'{{ key }}', s.{{ adapter.quote(key) }}{{ ', ' if not loop.last }}{% endfor %}))) as duplicate_example
from {{ mv_staged(args) }} s
left semi join {{ args['target'] }} t
on {% for key in args['keys'] %}s.{{ adapter.quote(key) }} = t.{{ adapter.quote(key) }}{{ ' and ' if not loop.last }}{% endfor %}
where s.__mv_op = 'I'
{%- endmacro %}
