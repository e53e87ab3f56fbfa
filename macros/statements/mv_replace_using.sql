{#- The staged rows that replace those of their keys and of the keys that are gone, see replace_using.py: Spark 4.1 knows the statement around this query
    only as a DataFrame's. -#}
{% macro default__mv_replace_using(args) -%}
select
  {%- for column in args['columns'] %}
  {{ adapter.quote(column['name']) }}{{ ',' if not loop.last }}
  {%- endfor %}
from {{ args['stage'] }}
where __mv_op <> 'D'
{%- endmacro %}
