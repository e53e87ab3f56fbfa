{#- Refuses arguments that an operation does not know: dbt would name an internal macro, and not those that there are. -#}
{% macro mv_no_others(operation, known, others) -%}
  {%- if others -%}
    {%- do exceptions.raise_compiler_error('[OPERATION_ARGUMENT] ' ~ operation ~ ' takes ' ~ (known | join(', ') or 'no argument') ~ ', and no '
      ~ (others.keys() | join(', ')) ~ '. Nothing was changed') -%}
  {%- endif -%}
{%- endmacro %}
