{#- The model that a generic test stands on, and its relation: the test's own `model` may be a query that filters it. -#}
{% macro mv_tested(test) -%}
  {{ return(graph.nodes.get(test.get('attached_node') or test['depends_on']['nodes'][0], {})) }}
{%- endmacro %}

{% macro mv_tested_relation(node) -%}
  {{ return(api.Relation.create(database=node.database, schema=node.schema, identifier=node.alias, type='table')) }}
{%- endmacro %}

{% macro mv_listed(given, otherwise=none) -%}
  {%- set found = otherwise if given is none else given -%}
  {{ return([found] if found is string else (found or [])) }}
{%- endmacro %}

{#- The instant that a test compares with: `--vars '{as_of: …}'`, else the invocation's start. -#}
{% macro mv_test_instant() -%}
  {%- if var('as_of', none) -%}timestamp'{{ var('as_of') }}'{%- else -%}timestamp'{{ run_started_at.strftime('%Y-%m-%d %H:%M:%S') }} UTC'{%- endif -%}
{%- endmacro %}
