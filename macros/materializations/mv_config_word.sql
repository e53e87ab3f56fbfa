{#- A setting of the model, which may stand beside dbt's own or under `meta: {nondeterministic_mv: {…}}`. -#}
{% macro mv_config_word(word) -%}
  {%- set said = config.get(word) -%}
  {%- if said is none -%}
    {%- set said = ((config.get('meta') or {}).get('nondeterministic_mv') or {}).get(word) -%}
  {%- endif -%}
  {{ return(said) }}
{%- endmacro %}
