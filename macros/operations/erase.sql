{#- Erase what the tables of a model still hold of rows that its sources have lost, and say where traces remain. The order: delete the rows in
    the sources, run the model, then this; VACUUM at last.

    dbt run-operation erase --args '{model: tickets, keys: [4711], dry_run: true}'
    dbt run-operation erase --args '{model: tickets, where: "customer_id = 4711"}'
    A key of several columns is a mapping: keys: [{region: eu, ticket_id: 4711}] -#}
{% macro erase(model, keys=[], where=none, dry_run=false) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- do mv.mv_no_others('erase', ['model', 'keys', 'where', 'dry_run'], kwargs) -%}
  {%- set node = mv.mv_node(model) -%}
  {%- do mv.mv_existing(node) -%}
  {%- set invocation = mv.mv_invocation_of(node) -%}
  {%- set record = mv.mv_statement({'macro': 'mv_record_only', 'args': {'relation': invocation['target']}}) -%}
  {%- set listed = [keys] if keys is string or keys is number or keys is mapping else keys -%}
  {%- do log(adapter.mv_erase(invocation, mv.mv_asking(), listed, where, dry_run, record, var('functions', {})), info=true) -%}
{%- endmacro %}
