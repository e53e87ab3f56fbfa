{#- The macro-only mode: on an adapter other than spark_mv, a run follows a plan that `spark-mv plan` wrote ahead of time and the project
    has among its macros. Here: the plan of this model for this table. -#}
{% macro mv_planned(relation, sql) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- set written = context.get('spark_mv_plan__' ~ mv.mv_plan_word(model.unique_id)) -%}
  {%- if not written -%}
    {%- do mv.mv_need_adapter() -%}
  {%- endif -%}
  {%- do mv.mv_warn_of_variables() -%}
  {%- set plans = written() -%}
  {%- if plans is none -%}
    {%- do mv.mv_plan_again('its plan is not as `spark-mv plan` wrote it (edited or merged by hand)') -%}
  {%- endif -%}
  {%- if plans['format'] is number and plans['format'] > 1 -%}
    {%- do mv.mv_newer('its plan is in format ' ~ plans['format'] ~ ', which') -%}
  {%- endif -%}
  {#- a plan is made where names have no catalog (`type: spark_mv`), dbt-databricks writes it before each: the one of its target is also that
      of the session -#}
  {%- set catalog = adapter.quote(relation.database) ~ '.' if adapter.type() == 'databricks' and relation.database else '' -%}
  {%- set name, text = relation | string, sql.strip() -%}
  {%- if catalog -%}{%- set name, text = name | replace(catalog, ''), text | replace(catalog, '') -%}{%- endif -%}
  {%- set planned = plans['tables'].get(name) -%}
  {%- if plans['format'] != 1 or plans['model'] != model.unique_id -%}
    {%- do mv.mv_plan_again('its plan is one of ' ~ plans['model'] ~ ' in format ' ~ plans['format']) -%}
  {%- elif planned is none -%}
    {%- do mv.mv_plan_again('there is no plan for the table ' ~ relation) -%}
  {%- elif planned.get('needs_adapter') -%}
    {%- do exceptions.raise_compiler_error(
        "[NEEDS_ADAPTER] model " ~ model.name ~ ": the plan says that macros alone cannot run it: " ~ planned['needs_adapter']
        ~ ". Run it with the adapter (`type: spark_mv`); the table was not touched"
    ) -%}
  {%- elif planned['sql'] != text -%}
    {%- do mv.mv_plan_again("its compiled SQL is not that of the plan (edited, compiled with other variables, or read through --empty, --sample or --defer)") -%}
  {%- endif -%}
  {%- for word in planned['words'] if tojson(mv.mv_config_word(word), sort_keys=true) != tojson(planned['config'].get(word), sort_keys=true) -%}
    {%- do mv.mv_plan_again('the setting ' ~ word ~ ' is not that of the plan') -%}
  {%- endfor -%}
  {%- if config.get('contract') and config.get('contract').enforced -%}
    {%- do mv.mv_plan_again('its contract is enforced') -%}
  {%- endif -%}
  {%- for word in ['max_rows_changed', 'audit'] if var(word, none) not in ([none, '100%'] if word == 'max_rows_changed' else [none]) -%}
    {%- do exceptions.raise_compiler_error("[NEEDS_ADAPTER] model " ~ model.name ~ ": the variable " ~ word ~ " is followed by the adapter only") -%}
  {%- endfor -%}
  {%- if adapter.config is defined and adapter.config.credentials.method == 'session' and target.threads != 1 -%}
    {%- do exceptions.raise_compiler_error(
        "[ONE_THREAD] model " ~ model.name ~ ": with `method: session` all threads of dbt share one Spark session, and what a run sets for its "
        ~ "own commit would reach those of others. Run it with --threads 1"
    ) -%}
  {%- endif -%}
  {{ return(planned) }}
{%- endmacro %}

{#- How the plan of a model is called (plan_files.py): by its name, with its version, and with its package where that is not the project. -#}
{% macro mv_plan_word(unique_id) -%}
  {%- set package, name = unique_id.split('.')[1], unique_id.split('.')[2:] | join('.') -%}
  {{ return(modules.re.sub('[^A-Za-z0-9_]', '_', name if package == project_name else package ~ '__' ~ name)) }}
{%- endmacro %}

{#- A run without its `as_of` goes by the real clock, and rows leave. -#}
{% macro mv_warn_of_variables() -%}
  {%- set given = invocation_args_dict.get('vars') if invocation_args_dict is defined else none -%}
  {%- for name in (given if given is mapping else {}) if name != 'as_of' and name | lower | replace('_', '') | list | unique | sort | join == 'afos' -%}
    {%- do exceptions.warn("model " ~ model.name ~ ": --vars has '" ~ name ~ "', which nothing reads (did you mean 'as_of'?)") -%}
  {%- endfor -%}
{%- endmacro %}

{#- What a later release wrote is not guessed at (maintenance/format_version.py). -#}
{% macro mv_newer(what) -%}
  {%- do exceptions.raise_compiler_error(
      "[NEWER_FORMAT] model " ~ model.name ~ ": " ~ what ~ " a later release of dbt-spark-mv wrote. Nothing was changed. Install the release of "
      ~ "this package that wrote it, or a later one"
  ) -%}
{%- endmacro %}

{% macro mv_plan_again(why) -%}
  {%- do exceptions.raise_compiler_error(
      "[STALE_PLAN] model " ~ model.name ~ ": " ~ why ~ ". The table was not touched. Run `spark-mv plan` for this target and commit what it "
      ~ "writes, or run the model with the adapter (`type: spark_mv`)"
  ) -%}
{%- endmacro %}

{#- What only the adapter can do now; a later run by macros continues from it. -#}
{% macro mv_adapter_once(why) -%}
  {%- do exceptions.raise_compiler_error(
      "[NEEDS_ADAPTER] model " ~ model.name ~ ": " ~ why ~ ". The table was not touched. Run the model once with the adapter (`type: spark_mv`), "
      ~ "which keeps its values; macros continue from there"
  ) -%}
{%- endmacro %}

{#- The value with what a run knows in each place of it. -#}
{% macro mv_filled(value, places) -%}
  {%- set ns = namespace(text=tojson(value)) -%}
  {%- for mark in places -%}
    {%- set ns.text = ns.text | replace(mark, tojson(places[mark] | string)[1:-1]) -%}
  {%- endfor -%}
  {{ return(fromjson(ns.text)) }}
{%- endmacro %}

{#- The one row of a question, by column name; what is NULL is left out. As JSON, because dbt guesses types of what it reads. -#}
{% macro mv_asked(sql) -%}
  {{ return(fromjson(run_query('select to_json(struct(*)) as found from (\n' ~ sql ~ '\n)').rows[0][0])) }}
{%- endmacro %}

{#- Microseconds since 1970 as the engine writes an instant (UTC); none for the end of the year 9999 and later. -#}
{% macro mv_instant(micros) -%}
  {%- if micros is none or micros >= 253402300799999999 -%}{{ return(none) }}{%- endif -%}
  {%- set moment = modules.datetime.datetime(1970, 1, 1) + modules.datetime.timedelta(microseconds=micros) -%}
  {{ return(moment.strftime('%Y-%m-%d %H:%M:%S.%f')) }}
{%- endmacro %}
