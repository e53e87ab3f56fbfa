{#- dbt's own unit tests of a model with draws, clocks and AI functions: their values are given, never drawn or asked.

    overrides:
      vars:
        as_of: "2026-02-01 06:00:00"            # what the clock says
        draws: {rand: 0.25, uuid: u-1}          # what a function draws
        ai_answers: {ai_gen: {"the first argument": "the answer"}} -#}
{% materialization unit, adapter='spark_mv' %}
  {#- dbt lets the test's variables into the model's SELECT alone -#}
  {%- set given = (model.get('overrides') or {}).get('vars') or {} -%}
  {%- do context.update({'sql': adapter.mv_unit_sql(
      sql, given['as_of'] if 'as_of' in given else context.get('dbt_spark_mv', dbt).mv_as_of(), given.get('ai_answers', {}), given.get('draws', {}), run_started_at)}) -%}
  {{ return(materialization_unit_default()) }}
{% endmaterialization %}

{#- `dbt show`: the clock says `as_of` where it is given; of AI functions the answers that are there, NULL where there is none; nothing is asked. -#}
{% macro spark_mv__get_limit_sql(sql, limit) %}
  {{ adapter.mv_shown(sql, context.get('dbt_spark_mv', dbt).mv_as_of(), run_started_at) }}
  {% if limit is not none %}
  limit {{ limit }}
  {%- endif -%}
{% endmacro %}
