{#- Ask again for the AI answers of a model (of all models without one); what the next runs ask, budgets and all, is up to
    them, and the old answers stay visible until then. Other models that share such an answer are told, too.

    dbt run-operation recompute_ai --args '{model: tickets, errors_only: true}'
    dbt run-operation recompute_ai --args "{model: tickets, where: \"model = 'old'\"}"     where: a condition on ai_results -#}
{% macro recompute_ai(model, errors_only=false, where=none) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- do mv.mv_no_others('recompute_ai', ['model', 'errors_only', 'where'], kwargs) -%}
  {%- set asking = mv.mv_asking(model) -%}
  {%- do log(adapter.mv_ai_upkeep('recompute', asking, errors_only=errors_only, where=where, beside=[] if model is undefined else mv.mv_asking()), info=true) -%}
{%- endmacro %}

{#- Remove answers of this project that no row of its models refers to and that are older than so many days. Never automatic.
    Answers that another project paid or uses stay; so do those of earlier releases, which say no project, without
    include_unowned.

    dbt run-operation prune_ai_results --args '{older_than_days: 90, dry_run: true}' -#}
{% macro prune_ai_results(older_than_days=30, dry_run=false, include_unowned=false) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- do mv.mv_no_others('prune_ai_results', ['older_than_days', 'dry_run', 'include_unowned'], kwargs) -%}
  {%- do log(adapter.mv_ai_upkeep('prune', mv.mv_asking(), older_than_days=older_than_days, dry_run=dry_run, include_unowned=include_unowned), info=true) -%}
{%- endmacro %}

{#- Take in the answers of AI batches that have ended. The next runs of the models show them. `gone`: the id of a batch, or a list of
    ids, that the endpoint does not know and will not know again: its inputs are asked again.

    dbt run-operation collect_ai
    dbt run-operation collect_ai --args '{gone: batch_1}' -#}
{% macro collect_ai(model, gone=none) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- do mv.mv_no_others('collect_ai', ['model', 'gone'], kwargs) -%}
  {%- do log(adapter.mv_ai_upkeep('collect', mv.mv_asking(model), gone=gone), info=true) -%}
{%- endmacro %}

{#- Views of who answered what: ai_errors, ai_costs, and <model>__ai_answers for each model with AI functions.

    dbt run-operation ai_views -#}
{% macro ai_views() -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- do mv.mv_no_others('ai_views', [], kwargs) -%}
  {%- do log(adapter.mv_ai_upkeep('views', mv.mv_asking()), info=true) -%}
{%- endmacro %}

{#- The invocations of one model; of all, where none is given. One that is none or empty is refused: it was not left out. -#}
{% macro mv_asking(model) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- set nodes = [] -%}
  {%- if model is not undefined -%}
    {%- do nodes.append(mv.mv_node(model)) -%}
  {%- else -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.config.materialized == 'nondeterministic_mv' -%}
      {%- do nodes.append(node) -%}
    {%- endfor -%}
  {%- endif -%}
  {%- set found = [] -%}
  {%- for node in nodes -%}
    {%- do found.append(mv.mv_invocation_of(node)) -%}
  {%- endfor -%}
  {{ return(found) }}
{%- endmacro %}
