{#- The keys of the staged rows that only leave, and one of those that are written. -#}
{% macro default__mv_gone_keys(args) -%}
  {%- set key = adapter.quote(args['keys'][0]) -%}
select {{ key }} as key, true as gone from {{ args['stage'] }} where __mv_op = 'D'
union all
select min({{ key }}), false from {{ args['stage'] }} where __mv_op <> 'D'
{%- endmacro %}
