{#- The SQL of one step of a plan, or none for a step that is no SQL. One macro a kind (steps/kinds.py), found by its name; each
    can be overridden in a project as `default__…` of adapter.dispatch is. -#}
{% macro mv_statement(step) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {{ return(mv[step.macro](step.args) if step.macro is not none else none) }}
{%- endmacro %}
