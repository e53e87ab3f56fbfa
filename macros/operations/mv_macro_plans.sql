{#- For `spark-mv plan`: the plan of each nondeterministic_mv of the project in this target, as JSON by unique_id. `models`: only those of these names. -#}
{% macro mv_macro_plans(models=none) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- set plans = {} -%}
  {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.config.materialized == 'nondeterministic_mv' and adapter.mv_is_called(node, models) -%}
    {%- do plans.update({node.unique_id: dict(adapter.mv_macro_plan(mv.mv_invocation_of(node)), word=mv.mv_plan_word(node.unique_id))}) -%}
  {%- endfor -%}
  {{ return(tojson(plans)) }}
{%- endmacro %}
