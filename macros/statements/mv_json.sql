{#- A value as JSON text that differs whenever the value does: NULL fields are written, instants to the microsecond (Spark's
    default is milliseconds). For types that Spark cannot compare, or compares loosely (maps, variants, collations). -#}
{% macro mv_json(value) -%}
to_json(named_struct('v', {{ value }}), map('ignoreNullFields', 'false', 'timestampFormat', "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", 'timestampNTZFormat', "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"))
{%- endmacro %}
