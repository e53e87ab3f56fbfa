{#- The `as_of` of `--vars`, none where it is not said. One that is said and empty (a scheduler's variable without a value) is no wish for the clock:
    rows would leave, and what was drawn for them. -#}
{% macro mv_as_of() -%}
  {%- set said = var('as_of', false) -%}
  {%- if said is none or said is string and not said | trim -%}
    {%- do exceptions.raise_compiler_error(
        '[AS_OF] as_of under --vars is empty. Nothing was changed: rows could leave by the clock, and their kept values with them. Write it like "2026-01-31 06:00:00", or leave the word out to go by the clock'
    ) -%}
  {%- endif -%}
  {{ return(none if said is false else said) }}
{%- endmacro %}
