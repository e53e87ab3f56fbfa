{#- A run by macros alone: the plan's own steps, rendered by the statement macros, and one commit that carries the record. Returns whether the
    table was made anew. -#}
{% macro mv_planned_run(relation, existing_relation, sql) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- set planned = mv.mv_planned(relation, sql) -%}
  {%- set facts = mv.mv_planned_facts(planned, relation, existing_relation) -%}
  {%- do planned.update({'table_columns': mv.mv_in_lower(planned['columns'])}) -%}
  {%- set choice = mv.mv_planned_choice(planned, facts) -%}
  {%- if choice.get('needs') -%}
    {%- do mv.mv_adapter_once(choice['needs']) -%}
  {%- elif choice['situation'] == 'no_op' -%}
    {%- do store_raw_result(name='main', message='NO_OP ' ~ choice['why'], code='NO_OP', rows_affected=0) -%}
    {{ return(false) }}
  {%- endif -%}
  {%- set seconds = run_started_at.timestamp() | int -%}
  {%- do facts['places'].update({'__mv_fill_invocation__': invocation_id, '__mv_fill_asked_at__': facts['started_at'] ~ ' UTC'}) -%}
  {%- do facts['places'].update({'__mv_fill_stamp__': ('%x' | format(seconds)) ~ '_' ~ local_md5(invocation_id ~ model.unique_id)[:12]}) -%}
  {%- set followed = mv.mv_planned_followed(planned, facts, choice['changed'][0]) if choice.get('changed', []) | length == 1 else none -%}
  {%- set plan = followed or {'strategy': 'COMPLETE_RECOMPUTE', 'steps': planned['situations'][choice['situation']]} -%}
  {%- do planned['record'].update({'strategy': plan['strategy']}) -%}
  {%- set done = mv.mv_planned_steps(planned, facts, mv.mv_filled(plan['steps'], facts['places']), relation) -%}
  {%- set counts, calls = done['counts'], done['calls'] -%}
  {%- set changed = counts['inserted'] + counts['updated'] + counts['deleted'] -%}
  {%- set message = plan['strategy'] ~ ' by macros (' ~ choice['why'] ~ '): ' ~ counts['inserted'] ~ ' inserted, ' ~ counts['updated'] ~ ' updated, ' ~ counts['deleted'] ~ ' deleted' ~ (', ' ~ calls ~ ' AI calls' if calls else '') -%}
  {%- do store_raw_result(name='main', message=message, code=done['verb'], rows_affected=changed) -%}
  {{ return(done['verb'] != 'MERGE') }}
{%- endmacro %}

{#- The steps in order. What the check of the staged rows counts decides which of the later ones are due (maintenance/staged.py). -#}
{% macro mv_planned_steps(planned, facts, steps, relation) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- set ns = namespace(calls=0, counts={}, due={}, next=none, verb='MERGE', replaced=false) -%}
  {%- set stages = [] -%}
  {%- for step in steps -%}
    {%- set args, kind = step['args'], step['kind'] -%}
    {%- if step['when'] is not none and not ns.due[step['when']] -%}
    {%- elif kind == 'ai_round' -%}
      {%- set ns.calls = ns.calls + mv.mv_planned_ai(args) -%}
    {%- elif kind in ('stage_changes', 'stage_query', 'stage_source_changes') -%}
      {%- do stages.append(args['into']) -%}
      {%- if kind == 'stage_source_changes' -%}{%- do args.update({'low': args['low'] | int, 'high': args['high'] | int}) -%}{%- endif -%}
      {%- do run_query(mv.mv_statement(step)) -%}
    {%- elif kind == 'check_stage' -%}
      {%- set ns.counts = mv.mv_asked(mv.mv_statement(step)) -%}
      {%- do mv.mv_refuse_keys(ns.counts, args['keys'], stages) -%}
      {%- set ns.due, ns.next = mv.mv_due(ns.counts), ns.counts.get('next_change') -%}
      {%- do ns.due.update({'far': ns.next is none}) -%}
      {%- set known = args['target_rows'] if planned['record']['strategy'] == 'COMPLETE_RECOMPUTE' else facts['table']['record'].get('target_rows') -%}
      {%- if known is not none and ns.counts.get('target_rows') is none -%}{%- do ns.counts.update({'target_rows': known}) -%}{%- endif -%}
    {%- elif kind == 'check_new' -%}
      {%- do mv.mv_refuse_keys(mv.mv_asked(mv.mv_statement(step)), args['keys'], stages) -%}
    {%- elif kind == 'check_limit' -%}
      {%- do mv.mv_refuse_changes(ns.counts, args, stages) -%}
    {%- elif kind == 'confirm_sources' -%}
      {#- a view has no version: what was written to while it was read is read again by the next run -#}
      {%- for source in args['sources'] if mv.mv_newest(source['table'])['version'] != facts['sources'][source['name']]['version'] -%}
        {%- do facts['sources'].update({source['name']: {'version': -1, 'timestamp': ''}}) -%}
      {%- endfor -%}
    {%- elif kind == 'count_evicted' -%}
    {%- elif kind == 'next_change' -%}
      {%- set ns.next = mv.mv_asked('select unix_micros((\n' ~ args['query'] ~ '\n)) as next_change').get('next_change') -%}
    {%- else -%}
      {%- set ns.replaced = kind in ('create_table', 'replace_table') -%}
      {%- if ns.replaced -%}{%- set ns.verb = 'CREATE' if kind == 'create_table' else 'REPLACE' -%}{%- endif -%}
      {%- set record = mv.mv_planned_record(planned, facts, ns.counts, mv.mv_instant(ns.next), ns.replaced) -%}
      {%- do mv.mv_publish(relation, record, facts, mv.mv_statement(step), stages) -%}
    {%- endif -%}
  {%- endfor -%}
  {%- do mv.mv_drop(stages) -%}
  {{ return({'counts': ns.counts, 'verb': ns.verb, 'calls': ns.calls}) }}
{%- endmacro %}

{#- Which steps are due, by the names of their conditions. -#}
{% macro mv_due(counts) -%}
  {%- set rows = counts['inserted'] + counts['updated'] + counts['deleted'] -%}
  {{ return({
      'deletes': counts['deleted'] > 0,
      'inserts': counts['inserted'] > 0,
      'unproven': counts['inserted'] > 0,
      'only_new': rows == counts['inserted'] and rows > 0,
      'many_keys': rows > counts['inserted'],
      'unchanged': rows == 0,
  }) }}
{%- endmacro %}

{% macro mv_refuse_keys(counts, keys, stages) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- if counts['duplicate_keys'] or counts.get('null_keys') -%}
    {%- do mv.mv_drop(stages) -%}
    {%- do exceptions.raise_compiler_error(
        "[KEY_REPEATED] model " ~ model.name ~ ": unique_key (" ~ keys | join(', ') ~ ") does not identify the rows of the query: "
        ~ counts['duplicate_keys'] ~ " rows share a key with another" ~ (', e.g. ' ~ counts['duplicate_example'] if counts.get('duplicate_example') else '')
        ~ "; " ~ counts.get('null_keys', 0) ~ " rows have a NULL in it. The table was not touched"
    ) -%}
  {%- endif -%}
{%- endmacro %}

{#- max_rows_changed (maintenance/row_limit.py): rows that only come do not count. -#}
{% macro mv_refuse_changes(counts, limit, stages) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- set changed, before = counts.get('changes', counts['updated']) + counts['deleted'], counts.get('target_rows', 0) -%}
  {%- set most = before * limit['of'] // limit['each'] if limit['rows'] is none else limit['rows'] -%}
  {%- if changed > most and var('max_rows_changed', none) is none -%}
    {%- do mv.mv_drop(stages) -%}
    {%- do exceptions.raise_compiler_error(
        "[MAX_ROWS_CHANGED] model " ~ model.name ~ ": this run would change or delete " ~ changed ~ " rows" ~ (' of ' ~ before if before else '')
        ~ ", and max_rows_changed is " ~ limit['limit'] ~ " (" ~ most ~ " rows). Nothing was published. Look whether the sources arrived complete; if "
        ~ "this is right, let it pass once with --vars '{\"max_rows_changed\": \"100%\"}'"
    ) -%}
  {%- endif -%}
{%- endmacro %}

{#- What the commit says of the run (maintenance/record.py). The query's columns, key bounds and costs are left for the adapter to find. -#}
{% macro mv_planned_record(planned, facts, counts, next_change_at, replaced) -%}
  {%- set table, record = facts['table'], {} -%}
  {%- set last = table['record'] if table is not none else {} -%}
  {%- set rows = counts.get('target_rows') -%}
  {%- do record.update(planned['record']) -%}
  {%- do record.update({
      'as_of': facts['as_of'],
      'time_zone': planned['time_zone'],
      'sources': facts['sources'],
      'pins': facts['pins'],
      'settings': facts['settings'],
      'next_change_at': next_change_at,
      'base_version': none if table is none else table['version'],
      'turn': 0 if table is none else table['record_version'] + 1,
      'invocation_id': invocation_id,
      'started_at': facts['started_at'],
      'ask_again': '' if table is none else table.get('ask_again', ''),
      'target_rows': counts['remaining'] if replaced else (none if rows is none else rows + counts['inserted'] - counts['deleted']),
      'pace': last.get('pace', {}),
      'unaudited': last.get('unaudited', 0) + 1,
      'read_twice': last.get('read_twice', {}) if last.get('query') == planned['record']['query'] and not facts['full_refresh'] else {},
      'model': model.unique_id,
      'run_id': local_md5(invocation_id ~ ' ' ~ model.unique_id),
  }) -%}
  {{ return(record) }}
{%- endmacro %}
