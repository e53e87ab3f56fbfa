{#- The table's highest and lowest key, which Delta answers from its metadata where it can. -#}
{% macro default__mv_key_range(args) -%}
  {%- set key = adapter.quote(args['keys'][0]) -%}
select max({{ key }}) as highest, min({{ key }}) as lowest from {{ args['target'] }}
{%- endmacro %}
