{#- Say what the next run of a model would do, and why, without doing it.

    dbt run-operation explain_mv --args '{model: tickets}'           (add format: json for JSON) -#}
{% macro explain_mv(model, format='text') -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- do mv.mv_no_others('explain_mv', ['model', 'format'], kwargs) -%}
  {%- do log(adapter.mv_explain(mv.mv_invocation_of(mv.mv_node(model)), format), info=true) -%}
{%- endmacro %}

{#- What a run of the model would hand to the engine. -#}
{% macro mv_invocation_of(node) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- set relation = api.Relation.create(database=node.database, schema=node.schema, identifier=node.alias, type='table') -%}
  {%- set existing = adapter.get_relation(node.database, node.schema, node.alias) -%}
  {%- if node.get('language') == 'python' -%}
    {{ return(mv.mv_invocation(node, relation, existing, mv.mv_frame_query(relation))) }}
  {%- endif -%}
  {{ return(mv.mv_invocation(node, relation, existing, adapter.mv_compile(node.unique_id, 'nondeterministic_mv'))) }}
{%- endmacro %}
