{#- Upkeep of the tables of a model (of all models without one) and of those that models share: ai_results, ai_similar, ai_batches, mv_runs. OPTIMIZE
    puts small files together; `vacuum` removes files that are older than the table's retention; staging tables of dead runs are dropped.

    dbt run-operation maintain --args '{dry_run: true}'        how many files there are
    dbt run-operation maintain --args '{vacuum: true}' -#}
{% macro maintain(model, vacuum=false, dry_run=false) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- do mv.mv_no_others('maintain', ['model', 'vacuum', 'dry_run'], kwargs) -%}
  {%- do log(adapter.mv_maintain(mv.mv_asking(model), vacuum, dry_run), info=true) -%}
{%- endmacro %}
