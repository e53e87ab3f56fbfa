{#- For `spark-mv cost`: what the next run of each nondeterministic_mv of the project would ask of models, as JSON by unique_id. `models`: only those of these names. -#}
{% macro mv_ai_costs(models=none) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- set costs = {} -%}
  {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.config.materialized == 'nondeterministic_mv' and adapter.mv_is_called(node, models) -%}
    {%- do costs.update({node.unique_id: adapter.mv_ai_cost(mv.mv_invocation_of(node))}) -%}
  {%- endfor -%}
  {{ return(tojson(costs)) }}
{%- endmacro %}
