{#- The keys of the staged rows, as far as they are few. -#}
{% macro default__mv_staged_keys(args) -%}
select {% for key in args['keys'] %}{{ adapter.quote(key) }}{{ ', ' if not loop.last }}{% endfor %}
from {{ args['stage'] }}
limit {{ args['limit'] }}
{%- endmacro %}
