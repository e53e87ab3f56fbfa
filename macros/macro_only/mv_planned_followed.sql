{#- The incremental strategy that a run may take, with its steps, or none: then it recomputes completely, which is always right. `name`: the one
    source that changed, where nothing else did. -#}
{% macro mv_planned_followed(planned, facts, name) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- set record, ns = facts['table']['record'], namespace(source=none) -%}
  {%- set plans, before, now = planned['incremental'].get(name), record['sources'].get(name), facts['sources'].get(name) -%}
  {%- for source in planned['sources'] if source['name'] == name -%}{%- set ns.source = source -%}{%- endfor -%}
  {%- if not plans or not before or not now or before['version'] < 0 or not 0 < now['version'] - before['version'] < 1000 -%}
    {{ return(none) }}
  {%- elif record.get('source_columns', {}).get(name) != planned['record']['source_columns'][name] -%}
    {{ return(none) }}
  {%- endif -%}
  {%- set properties = mv.mv_listing(run_query('describe detail ' ~ ns.source['table']).rows[0]['properties']) -%}
  {%- set rows = run_query('describe history ' ~ ns.source['table'] ~ ' limit ' ~ (now['version'] - before['version'] + 5)).rows -%}
  {%- set since = mv.mv_followed_since(planned['follows'], rows, properties, before, now['version'], facts['feed_from']) -%}
  {%- if since is none -%}{{ return(none) }}{%- endif -%}
  {%- set plan = plans['append'] if since['append_only'] and plans['append'] else plans['any'] -%}
  {%- if not plan or not record.get('read_twice', {}).get(plan['strategy'], true) -%}{{ return(none) }}{%- endif -%}
  {%- if facts['pins'] != record.get('pins', {}) and not plan['all_solved'] -%}{{ return(none) }}{%- endif -%}
  {%- do facts['places'].update({
      ns.source['low_mark']: before['version'],
      ns.source['first_mark']: before['version'] + 1,
      '__mv_fill_recorded__': record.get('next_change_at') or '9999-12-31 23:59:59.999999',
  }) -%}
  {{ return(plan) }}
{%- endmacro %}

{#- Whether the feed of a source tells all that happened after the version `before` up to `high`, and whether it only gained rows; none where it
    does not. Stricter than formats/delta_source.py. `rows`: its commits, newest first. `oldest`: what was committed before is not read any more. -#}
{% macro mv_followed_since(rules, rows, properties, before, high, oldest) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- if properties.get(rules['feed'], 'false') | lower != 'true' or rules['retention'] in properties -%}{{ return(none) }}{%- endif -%}
  {%- set ns = namespace(base=false, commits=0, follows=true, writes=0, append_only=true) -%}
  {%- for row in rows -%}
    {%- set version, operation = row['version'] | int, row['operation'] -%}
    {%- set at = mv.mv_commit_time(row) -%}
    {%- if version == before['version'] -%}
      {%- set ns.base = at == before['timestamp'] -%}
    {%- elif before['version'] < version <= high -%}
      {%- set ns.commits = ns.commits + 1 -%}
      {%- if at < oldest or operation in rules['schema'] or operation.startswith('VACUUM') -%}
        {%- set ns.follows = false -%}
      {%- elif operation in ('SET TBLPROPERTIES', 'UNSET TBLPROPERTIES') -%}
        {%- if rules['feed'] in row['operationParameters'] | string -%}{%- set ns.follows = false -%}{%- endif -%}
      {%- elif operation in rules['writes'] -%}
        {%- set ns.writes = ns.writes + 1 -%}
        {%- if not mv.mv_appends(row) -%}{%- set ns.append_only = false -%}{%- endif -%}
      {%- elif operation not in rules['keeps_rows'] -%}
        {%- set ns.follows = false -%}
      {%- endif -%}
    {%- endif -%}
  {%- endfor -%}
  {%- if not ns.base or not ns.follows or ns.commits != high - before['version'] -%}{{ return(none) }}{%- endif -%}
  {{ return({'append_only': ns.append_only and ns.writes > 0}) }}
{%- endmacro %}

{#- Whether a commit only brought rows. -#}
{% macro mv_appends(row) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- set parameters, metrics = mv.mv_listing(row['operationParameters']), mv.mv_listing(row['operationMetrics']) -%}
  {%- if row['operation'] == 'WRITE' -%}{{ return(parameters.get('mode') == 'Append') }}{%- endif -%}
  {%- if row['operation'] == 'STREAMING UPDATE' -%}{{ return(parameters.get('outputMode') == 'Append') }}{%- endif -%}
  {%- if row['operation'] == 'MERGE' -%}
    {{ return(metrics.get('numTargetRowsUpdated') == '0' and metrics.get('numTargetRowsDeleted') == '0') }}
  {%- endif -%}
  {{ return(row['operation'] == 'COPY INTO') }}
{%- endmacro %}
