{#- The cosine of the angle between two vectors (arrays of numbers of one length), a DOUBLE from -1 to 1: how near two texts are whose
    embeddings they are. NULL where one is NULL, empty or all zero, or their lengths differ. `a` and `b` are SQL. -#}
{% macro vector_cosine(a, b) -%}
{%- set mv = context.get('dbt_spark_mv', dbt) -%}
({{ mv.vector_dot(a, b) }} / nullif(sqrt({{ mv.vector_dot(a, a) }}) * sqrt({{ mv.vector_dot(b, b) }}), 0D))
{%- endmacro %}

{#- The dot product of two vectors, a DOUBLE. -#}
{% macro vector_dot(a, b) -%}
aggregate(zip_with({{ a }}, {{ b }}, (x, y) -> cast(x as double) * cast(y as double)), 0D, (s, p) -> s + p)
{%- endmacro %}
