{#- A string literal of Spark, in which it puts no setting's value for `${…}` (query/syntax/source_text.py). -#}
{% macro mv_text(text) -%}
'{{ text | replace('\\', '\\\\') | replace("'", "\\'") | replace('\n', '\\n') | replace('${', '\\u0024{') }}'
{%- endmacro %}
