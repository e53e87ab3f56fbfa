{#- The SQL of one step of a plan, or none for a step that is no SQL. One macro a kind (steps/kinds.py), found by its name through
    adapter.dispatch: a project overrides `default__mv_append` with a `spark__mv_append` of its own. -#}
{% macro mv_statement(step) -%}
  {%- set dispatch = adapter.dispatch -%}
  {%- set package = 'dbt_spark_mv' if context.get('dbt_spark_mv') else 'dbt' -%}
  {{ return(dispatch(step.macro, package)(step.args) if step.macro is not none else none) }}
{%- endmacro %}
