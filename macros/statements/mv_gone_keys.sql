{#- The keys of the staged rows that only leave, and one of those that are written. -#}
{% macro default__mv_gone_keys(args) -%}
  {%- set keys -%}
    {% for key in args['keys'] %}{{ adapter.quote(key) }}, {% endfor %}
  {%- endset -%}
select {{ keys }}true as __mv_gone from {{ args['stage'] }} where __mv_op = 'D'
union all
(select {{ keys }}false from {{ args['stage'] }} where __mv_op <> 'D' limit 1)
{%- endmacro %}
