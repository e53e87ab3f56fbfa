{#- A string literal of Spark. -#}
{% macro mv_text(text) -%}
'{{ text | replace('\\', '\\\\') | replace("'", "\\'") }}'
{%- endmacro %}
