{#- A table of contents: the plan decides, the macros in ../statements write the SQL, the adapter executes it. On other adapters the
    macros in ../macro_only execute a plan that was written ahead of time. -#}
{% materialization nondeterministic_mv, adapter='spark', supported_languages=['sql', 'python'] %}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- set grant_config = config.get('grants') -%}

  {{ run_hooks(pre_hooks) }}

  {%- if mv.mv_is_guarded(existing_relation) -%}
    {%- do mv.mv_skip_guarded(target_relation) -%}
  {%- else -%}
    {%- if config.get('sql_header') and adapter.type() == 'spark_mv' -%}
      {#- macros alone do not follow headers, and what one sets would outlast the model -#}
      {%- call statement('mv_header') -%}{{ config.get('sql_header') }}{%- endcall -%}
    {%- endif -%}
    {%- if model.get('language') == 'python' -%}
      {%- do mv.mv_before_frame(target_relation, existing_relation) -%}
      {#- dbt runs Python for a materialization alone, not for a macro that it calls -#}
      {%- call statement('mv_frame', language='python') -%}
        {{ mv.mv_python_write_table(compiled_code, adapter.mv_frame(target_relation), true) }}
      {%- endcall -%}
    {%- endif -%}
    {%- if adapter.type() == 'spark_mv' -%}
      {%- set run = mv.mv_plan(target_relation, existing_relation, mv.mv_query(target_relation, compiled_code)) -%}
      {%- do mv.mv_check_contract(run.query_sql) -%}
      {%- do run.want(mv.mv_checks(), mv.mv_described(), mv.mv_about()) -%}
      {%- for step in run.steps() -%}
        {%- do adapter.mv_execute(run, step, mv.mv_statement(step)) -%}
      {%- endfor -%}
      {%- if run.in_the_way is not none -%}{%- do adapter.cache_dropped(existing_relation) -%}{%- endif -%}
      {%- for sql in run.amendments() -%}
        {%- call statement('mv_amend') -%}{{ sql }}{%- endcall -%}
      {%- endfor -%}
      {%- do store_result('main', response=adapter.mv_response(run)) -%}
      {%- set replaced, undescribed = run.replaced, run.undescribed -%}
    {%- else -%}
      {%- set replaced, undescribed = mv.mv_planned_run(target_relation, existing_relation, compiled_code), false -%}
    {%- endif -%}

    {%- if replaced or undescribed -%}
      {%- do persist_docs(target_relation, model) -%}
    {%- endif -%}
    {%- do apply_grants(target_relation, grant_config, should_revoke(existing_relation, full_refresh_mode=replaced)) -%}
  {%- endif -%}

  {{ run_hooks(post_hooks) }}

  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
