{#- Turn the table of an `incremental` or `table` model into that of a nondeterministic_mv, with the values that it has. Says what
    that means; does it with `apply`. The command `spark-mv adopt` calls the same.

    dbt run-operation adopt_mv --args '{model: tickets, apply: true}'
    dbt run-operation adopt_mv --args '{model: tickets, unique_key: [ticket_id], freeze: [first_seen_at]}'   what its config does not say -#}
{% macro adopt_mv(model, apply=false, unique_key=none, freeze=none) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- do mv.mv_no_others('adopt_mv', ['model', 'apply', 'unique_key', 'freeze'], kwargs) -%}
  {%- do log(mv.mv_adopt(model, apply, unique_key, freeze), info=true) -%}
{%- endmacro %}

{% macro mv_adopt(model, apply=false, unique_key=none, freeze=none) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- set wanted = adapter.mv_as_mv(mv.mv_any_model(model), unique_key, freeze) -%}
  {%- set invocation = mv.mv_invocation_of(wanted) -%}
  {%- set record = mv.mv_statement({'macro': 'mv_record_only', 'args': {'relation': invocation['target']}}) -%}
  {{ return(adapter.mv_adopt(invocation, apply, record)) }}
{%- endmacro %}

{#- Turn the table of a nondeterministic_mv into a plain one, and print the model as `incremental`. Does it with `apply`.

    dbt run-operation eject_mv --args '{model: tickets, apply: true}' -#}
{% macro eject_mv(model, apply=false) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- do mv.mv_no_others('eject_mv', ['model', 'apply'], kwargs) -%}
  {%- do log(mv.mv_eject(model, apply), info=true) -%}
{%- endmacro %}

{% macro mv_eject(model, apply=false) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {{ return(adapter.mv_eject(mv.mv_invocation_of(adapter.mv_as_mv(mv.mv_any_model(model), none, none)), apply)) }}
{%- endmacro %}

{#- The model of that name, however it is materialized. -#}
{% macro mv_any_model(model) -%}
  {{ return(adapter.mv_model_named(graph.nodes.values() | list, model, any_materialization=true)) }}
{%- endmacro %}
