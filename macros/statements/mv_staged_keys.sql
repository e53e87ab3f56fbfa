{#- The keys of the staged rows, as far as they are few. -#}
{% macro mv_staged_keys(args) -%}
  {{ return(adapter.dispatch('mv_staged_keys', 'dbt')(args)) }}
{%- endmacro %}

{% macro default__mv_staged_keys(args) -%}
select {% for key in args['keys'] %}{{ adapter.quote(key) }}{{ ', ' if not loop.last }}{% endfor %}
from {{ args['stage'] }}
limit {{ args['limit'] }}
{%- endmacro %}
