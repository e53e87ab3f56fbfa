{#- dbt's own unit tests of a model with draws, clocks and AI functions: their values are given, never drawn or asked.

    overrides:
      vars:
        as_of: "2026-02-01 06:00:00"            # what the clock says
        draws: {rand: 0.25, uuid: u-1}          # what a function draws
        ai_answers: {ai_gen: {"the first argument": "the answer"}} -#}
{% materialization unit, adapter='spark_mv' %}
  {%- do context.update({'sql': adapter.mv_unit_sql(sql, var('as_of', none), var('ai_answers', {}), var('draws', {}), run_started_at)}) -%}
  {{ return(materialization_unit_default()) }}
{% endmaterialization %}

{#- `dbt show` of a model with AI functions: the answers that are there, NULL where there is none; nothing is asked. -#}
{% macro spark_mv__get_limit_sql(sql, limit) %}
  {{ adapter.mv_shown(sql) }}
  {% if limit is not none %}
  limit {{ limit }}
  {%- endif -%}
{% endmacro %}
