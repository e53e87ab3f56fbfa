{#- The seam between the materialization and the engine. -#}
{% macro mv_plan(target_relation, existing_relation, sql) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- do mv.mv_need_adapter() -%}
  {{ return(adapter.mv_begin(mv.mv_invocation(model, target_relation, existing_relation, sql))) }}
{%- endmacro %}

{% macro mv_need_adapter() -%}
  {%- if adapter.type() != 'spark_mv' -%}
    {%- do exceptions.raise_compiler_error(
        "nondeterministic_mv needs the adapter of dbt-spark-mv: install it (docs/install.md) and set `type: spark_mv` in the "
        ~ "profile (all methods of dbt-spark work there); this target is `type: " ~ adapter.type() ~ "`. Without the adapter, SQL models run "
        ~ "from a plan: `spark-mv plan` writes it into the project's macros"
    ) -%}
  {%- endif -%}
{%- endmacro %}

{#- What the engine cannot know by itself. -#}
{% macro mv_invocation(node, target_relation, existing_relation, sql) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {{ return({
      'model': node,
      'sql': sql,
      'target': target_relation | string,
      'schema': target_relation.without_identifier() | string,
      'identifier': target_relation.identifier,
      'target_exists': existing_relation is not none,
      'relation_names': adapter.mv_relation_names(target_relation),
      'started_at': run_started_at,
      'as_of': mv.mv_as_of(),
      'allow_future_as_of': var('allow_future_as_of', false),
      'functions': var('functions', {}),
      'variables': {
        'max_rows_changed': var('max_rows_changed', none), 'audit': var('audit', none),
        'second_reading': var('second_reading', none), 'choose_by': var('choose_by', none)
      },
      'invocation_id': invocation_id,
      'project': project_name,
      'full_refresh': should_full_refresh(),
      'partial': mv.mv_partial(),
      'followed': adapter.mv_followed(node.unique_id, graph.nodes),
      'namesakes': adapter.mv_namesakes(node.unique_id, graph.nodes),
      'others': adapter.mv_other_models(node.unique_id, graph.nodes),
  }) }}
{%- endmacro %}
