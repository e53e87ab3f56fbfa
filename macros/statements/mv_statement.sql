{#- The SQL of one step of a plan, or none for a step that is no SQL. One macro a kind, found by its name; each can be
    overridden in a project as `default__…` of adapter.dispatch is. -#}
{% macro mv_statement(step) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- if step.kind == 'stage_changes' -%}{{ return(mv.mv_stage_changes(step.args)) }}
  {%- elif step.kind == 'check_stage' -%}{{ return(mv.mv_check_stage(step.args)) }}
  {%- elif step.kind == 'count_evicted' -%}{{ return(mv.mv_count_evicted(step.args)) }}
  {%- elif step.kind == 'merge_into' -%}{{ return(mv.mv_merge_into(step.args)) }}
  {%- elif step.kind == 'create_table' -%}{{ return(mv.mv_create_table(step.args)) }}
  {%- elif step.kind == 'replace_table' -%}{{ return(mv.mv_replace_table(step.args)) }}
  {%- elif step.kind == 'record_only' -%}{{ return(mv.mv_record_only(step.args)) }}
  {%- elif step.kind == 'delete_from' -%}{{ return(mv.mv_delete_from(step.args)) }}
  {%- elif step.kind == 'forget_expired' -%}{{ return(mv.mv_forget_expired(step.args)) }}
  {%- elif step.kind == 'stage_source_changes' -%}{{ return(mv.mv_stage_source_changes(step.args)) }}
  {%- elif step.kind == 'stage_query' -%}{{ return(mv.mv_stage_query(step.args)) }}
  {%- elif step.kind == 'affected_range' -%}{{ return(mv.mv_affected_range(step.args)) }}
  {%- elif step.kind == 'key_range' -%}{{ return(mv.mv_key_range(step.args)) }}
  {%- elif step.kind == 'check_new' -%}{{ return(mv.mv_check_new(step.args)) }}
  {%- elif step.kind == 'staged_keys' -%}{{ return(mv.mv_staged_keys(step.args)) }}
  {%- elif step.kind == 'gone_keys' -%}{{ return(mv.mv_gone_keys(step.args)) }}
  {%- elif step.kind == 'append' -%}{{ return(mv.mv_append(step.args)) }}
  {%- elif step.kind == 'replace_where' -%}{{ return(mv.mv_replace_where(step.args)) }}
  {%- elif step.kind == 'replace_using' -%}{{ return(mv.mv_replace_using(step.args)) }}
  {%- elif step.kind == 'check_leaving' -%}{{ return(mv.mv_check_leaving(step.args)) }}
  {%- elif step.kind == 'delete_where' -%}{{ return(mv.mv_delete_where(step.args)) }}
  {%- elif step.kind == 'audit_keys' -%}{{ return(mv.mv_audit_keys(step.args)) }}
  {%- elif step.kind == 'audit_examples' -%}{{ return(mv.mv_audit_examples(step.args)) }}
  {%- elif step.kind == 'audit_watched' -%}{{ return(mv.mv_audit_watched(step.args)) }}
  {%- elif step.kind == 'next_change' -%}{{ return(step.args['query']) }}
  {%- elif step.kind in ('ai_round', 'confirm_sources', 'ask_ahead', 'check_limit') -%}{{ return(none) }}
  {%- else -%}{%- do exceptions.raise_compiler_error("nondeterministic_mv: no statement for step " ~ step.kind) -%}
  {%- endif -%}
{%- endmacro %}
