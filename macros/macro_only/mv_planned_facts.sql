{#- What a run by macros has to know: session, sources, and the table. -#}
{% macro mv_planned_facts(planned, relation, existing_relation) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- set session = mv.mv_planned_session(planned) -%}
  {%- set places = session['places'] -%}
  {%- set sources = {} -%}
  {%- for source in planned['sources'] -%}
    {%- if mv.mv_columns_of('describe table ' ~ source['table']) != mv.mv_in_lower(source['columns']) -%}
      {%- do mv.mv_plan_again('the columns of ' ~ source['name'] ~ ' are not those of the plan') -%}
    {%- endif -%}
    {%- if source['view'] is not none -%}
      {%- do mv.mv_planned_view(source, planned) -%}
    {%- else -%}
      {%- set newest = mv.mv_newest(source['table']) -%}
      {%- do sources.update({source['name']: newest}) -%}
      {%- do places.update({source['mark']: newest['version']}) -%}
    {%- endif -%}
  {%- endfor -%}
  {%- if planned.get('answers') -%}{%- do mv.mv_planned_answers(planned['answers']) -%}{%- endif -%}
  {%- set query_sql = mv.mv_filled(planned['query_sql'], places) -%}
  {%- if mv.mv_columns_of('describe query ' ~ query_sql) != mv.mv_in_lower(planned['columns']) -%}
    {%- do mv.mv_plan_again('the columns of its query are not those of the plan') -%}
  {%- endif -%}
  {{ return({
      'as_of': session['as_of'],
      'started_at': session['started_at'],
      'feed_from': session['feed_from'],
      'settings': session['settings'],
      'theirs': session['theirs'],
      'places': places,
      'sources': sources,
      'pins': mv.mv_filled(planned['record']['pins'], places),
      'full_refresh': should_full_refresh(),
      'table': mv.mv_planned_table(planned, relation, existing_relation),
  }) }}
{%- endmacro %}

{#- The newest version of a Delta table. -#}
{% macro mv_newest(table) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- set newest = run_query('describe history ' ~ table ~ ' limit 1').rows[0] -%}
  {{ return({'version': newest['version'] | int, 'timestamp': mv.mv_commit_time(newest)}) }}
{%- endmacro %}

{#- A view has to be the one that the plan looked through, made with settings like those. What it reads is a source of its own. -#}
{% macro mv_planned_view(source, planned) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- set told = fromjson(run_query('describe extended ' ~ source['table'] ~ ' as json').rows[0][0]) -%}
  {%- set made = told.get('view_creation_spark_configuration', {}) -%}
  {%- set there = {'text': told['view_text'], 'namespace': told['view_catalog_and_namespace'], 'collation': told.get('collation', ''), 'settings': {}} -%}
  {%- for name in made if mv.mv_decides(name, planned) or name == 'spark.sql.session.timeZone' -%}
    {%- do there['settings'].update({name: made[name]}) -%}
  {%- endfor -%}
  {%- for detail in source['view'] if source['view'][detail] != there[detail] -%}
    {%- do mv.mv_plan_again('the view ' ~ source['name'] ~ ' is not the one that the plan looked through') -%}
  {%- endfor -%}
{%- endmacro %}

{#- Whether a setting decides what an expression gives, its time zone apart. -#}
{% macro mv_decides(name, planned) -%}
  {%- set decides = namespace(it=name in planned['settings']['names']) -%}
  {%- for prefix in planned['settings']['prefixes'] if name.startswith(prefix) -%}{%- set decides.it = true -%}{%- endfor -%}
  {{ return(decides.it) }}
{%- endmacro %}

{#- The instant of the run, the texts that name it, and the settings that decide what an expression gives. -#}
{% macro mv_planned_session(planned) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- set given = mv.mv_as_of() -%}
  {%- set said = mv.mv_config_word('as_of') if given is none else given -%}
  {%- set start = "TIMESTAMP'" ~ run_started_at.strftime('%Y-%m-%d %H:%M:%S.%f') ~ "+00:00'" -%}
  {%- set at = 'cast(' ~ mv.mv_text(said | string) ~ ' as timestamp)' if said is not none else start -%}
  {%- set found = mv.mv_asked(
      'select current_timezone() as zone, version() as spark, unix_micros(' ~ at ~ ') as micros, unix_micros(timestampadd(DAY, 1, '
      ~ at ~ ')) as near, unix_micros(' ~ start ~ ') as started, unix_micros(current_timestamp()) as now'
  ) -%}
  {%- if found['zone'] != planned['time_zone'] -%}
    {%- do mv.mv_plan_again("the session's time zone is " ~ found['zone'] ~ ', and that of the plan ' ~ planned['time_zone']) -%}
  {%- elif found.get('micros') is none -%}
    {%- do exceptions.raise_compiler_error("[AS_OF] as_of: " ~ said ~ ' is not a timestamp; write it as "2026-01-31 06:00:00"') -%}
  {%- elif found['micros'] - found['started'] > 86400000000 and (var('allow_future_as_of', false) | string | lower) != 'true' -%}
    {%- do exceptions.raise_compiler_error("[AS_OF_AHEAD] as_of: " ~ said ~ " is more than a day ahead of the clock. The table was not touched") -%}
  {%- endif -%}
  {%- set settings, theirs = {'Spark': found['spark']}, {} -%}
  {%- for row in run_query('set').rows -%}
    {%- if mv.mv_decides(row[0], planned) -%}{%- do settings.update({row[0]: row[1] | string}) -%}{%- endif -%}
    {%- if row[0].startswith('spark.databricks.delta.write.txn') or (row[0] == 'spark.databricks.delta.commitInfo.userMetadata' and '"spark_mv"' in row[1]) -%}
      {#- of a run that failed while it published, in a session that outlived it -#}
      {%- do run_query('reset `' ~ row[0] ~ '`') -%}
    {%- elif row[0] == 'spark.databricks.delta.commitInfo.userMetadata' -%}
      {%- do theirs.update({row[0]: row[1]}) -%}
    {%- endif -%}
  {%- endfor -%}
  {%- set places, texts = {}, [] -%}
  {%- for mark in planned['session'] -%}{%- do texts.append(planned['session'][mark] ~ ' as ' ~ adapter.quote(mark)) -%}{%- endfor -%}
  {%- for mark in planned['places'] -%}
    {%- set place = planned['places'][mark] -%}
    {%- set micros = found['near'] if place['ahead_days'] else found['micros'] -%}
    {%- if place['sql'] -%}
      {%- do texts.append((place['sql'] | replace('__mv_at', 'timestamp_micros(' ~ micros ~ ')')) ~ ' as ' ~ adapter.quote(mark)) -%}
    {%- else -%}
      {%- do places.update({mark: "TIMESTAMP'" ~ mv.mv_instant(micros) ~ "+00:00'"}) -%}
    {%- endif -%}
  {%- endfor -%}
  {%- if texts -%}
    {%- do places.update(mv.mv_asked('select ' ~ texts | join(', '))) -%}
  {%- endif -%}
  {#- these stand inside the quotes of a literal -#}
  {%- for mark in planned['session'] -%}{%- do places.update({mark: mv.mv_text(places[mark])[1:-1]}) -%}{%- endfor -%}
  {{ return({
      'as_of': mv.mv_instant(found['micros']),
      'started_at': mv.mv_instant(found['now']),
      'feed_from': mv.mv_instant(found['now'] - planned['follows']['seconds'] * 1000000),
      'settings': settings,
      'theirs': theirs,
      'places': places,
  }) }}
{%- endmacro %}

{#- The table as it is, or none. -#}
{% macro mv_planned_table(planned, relation, existing_relation) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- if existing_relation is none -%}{{ return(none) }}{%- endif -%}
  {%- if existing_relation.is_view -%}
    {%- do mv.mv_not_ours('view') -%}
  {%- endif -%}
  {%- set detail = run_query('describe detail ' ~ relation).rows[0] -%}
  {%- set properties = mv.mv_listing(detail['properties']) -%}
  {%- if 'spark_mv.model' not in properties -%}
    {%- do mv.mv_not_ours('table') -%}
  {%- endif -%}
  {%- set history = mv.mv_planned_history(planned, relation) -%}
  {%- do history.update({
      'columns': mv.mv_columns_of('describe table ' ~ relation),
      'ask_again': properties.get('spark_mv.ask_again', ''),
      'partition_by': mv.mv_names(detail['partitionColumns']),
      'cluster_by': mv.mv_names(detail.get('clusteringColumns') or '[]'),
  }) -%}
  {{ return(history) }}
{%- endmacro %}

{% macro mv_not_ours(kind) -%}
  {%- do exceptions.raise_compiler_error(
      "[NOT_OURS] model " ~ model.name ~ ": a " ~ kind ~ " of this name exists that nondeterministic_mv did not make, and it is never overwritten by accident. "
      ~ "Drop it, or give the model another alias"
  ) -%}
{%- endmacro %}

{#- A map or list of a row: dbt hands over JSON, also where Spark gave another thing. -#}
{% macro mv_listing(value) -%}
  {{ return(fromjson(value) if value is string else value) }}
{%- endmacro %}

{% macro mv_names(value) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- set names = [] -%}
  {%- for name in mv.mv_listing(value) -%}{%- do names.append(name | replace('`', '') | lower) -%}{%- endfor -%}
  {{ return(names) }}
{%- endmacro %}

{#- Names and types of columns, in order of their names. -#}
{% macro mv_columns_of(describe) -%}
  {%- set columns, ns = [], namespace(more=true) -%}
  {%- for row in run_query(describe).rows if ns.more -%}
    {%- set name = row['col_name'] or '' -%}
    {%- if name == '' or name.startswith('#') -%}
      {%- set ns.more = false -%}
    {%- else -%}
      {%- do columns.append((name ~ ' ' ~ row['data_type']) | lower) -%}
    {%- endif -%}
  {%- endfor -%}
  {{ return(columns | sort) }}
{%- endmacro %}

{% macro mv_in_lower(columns) -%}
  {%- set found = [] -%}
  {%- for column in columns -%}{%- do found.append((column[0] ~ ' ' ~ column[1]) | lower) -%}{%- endfor -%}
  {{ return(found | sort) }}
{%- endmacro %}

{#- The time of a commit as the engine writes it. Rows carry it in the local time of dbt's process. -#}
{% macro mv_commit_time(row) -%}
  {%- set moment = row['timestamp'] -%}
  {{ return(moment | string if moment is string else moment.astimezone(modules.pytz.utc).strftime('%Y-%m-%d %H:%M:%S.%f')) }}
{%- endmacro %}
