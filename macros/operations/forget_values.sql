{#- Forget kept values: the next run draws the named columns anew, for all rows or those where `where` holds.

    dbt run-operation forget_values --args '{model: tickets, columns: [split], where: "ticket_id < 100"}'
    dbt run-operation forget_values --args '{model: tickets, withdraw: true}'       takes back what no run has honoured yet -#}
{% macro forget_values(model, columns=[], where=none, withdraw=false) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- do mv.mv_no_others('forget_values', ['model', 'columns', 'where', 'withdraw'], kwargs) -%}
  {%- set node = mv.mv_node(model) -%}
  {%- set relation = mv.mv_existing(node) -%}
  {%- set name = node.name ~ ('.v' ~ node.version if node.get('version') is not none else '') -%}
  {%- do log(adapter.mv_forget(relation | string, name, columns, where, withdraw, var('functions', {})), info=true) -%}
{%- endmacro %}

{#- The nondeterministic_mv of that name in the project. -#}
{% macro mv_node(model) -%}
  {{ return(adapter.mv_model_named(graph.nodes.values() | list, model)) }}
{%- endmacro %}

{% macro mv_existing(node) -%}
  {%- set relation = adapter.get_relation(node.database, node.schema, node.alias) -%}
  {%- if relation is none -%}
    {%- do exceptions.raise_compiler_error(node.name ~ " has not been built yet; run it first") -%}
  {%- endif -%}
  {{ return(relation) }}
{%- endmacro %}
