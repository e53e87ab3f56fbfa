{#- Make the run's one commit in its turn (formats/turn.py): Delta skips a write whose number another run has taken from the same state of the
    table, and refuses one of two that are made at once. The commit carries the run's id, and a run whose id is not in the history
    has lost its turn and written nothing. -#}
{% macro mv_publish(relation, record, facts, statement, stages) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {#- autoReset: a statement that fails ends the macro here. Then the next write of the session takes the number off, and none is skipped -#}
  {%- set settings = {
      'spark.databricks.delta.write.txnVersion.autoReset.enabled': 'true',
      'spark.databricks.delta.commitInfo.userMetadata': tojson(record),
      'spark.databricks.delta.write.txnAppId': 'spark_mv:' ~ model.unique_id,
      'spark.databricks.delta.write.txnVersion': record['turn'] | string,
  } -%}
  {%- for name in settings -%}
    {%- do run_query('set `' ~ name ~ '` = `' ~ (settings[name] | replace('`', '``')) ~ '`') -%}
  {%- endfor -%}
  {%- do run_query(statement) -%}
  {%- do mv.mv_reset(settings, facts['theirs']) -%}
  {%- set ns = namespace(made=false) -%}
  {%- for limit in [10, 100] if not ns.made -%}
    {%- for row in run_query('describe history ' ~ relation ~ ' limit ' ~ limit).rows if record['run_id'] in (row['userMetadata'] or '') -%}
      {%- set ns.made = true -%}
    {%- endfor -%}
  {%- endfor -%}
  {%- if not ns.made -%}
    {%- do mv.mv_drop(stages) -%}
    {%- do exceptions.raise_compiler_error(
        "[TURN_TAKEN] model " ~ model.name ~ ": another run published a new version of the table while this one was working, so this one "
        ~ "changed nothing. Run it again: it continues from the new state"
    ) -%}
  {%- endif -%}
{%- endmacro %}

{#- Settings of one commit would tag every later one of the session: back to what the user had set. -#}
{% macro mv_reset(settings, theirs) -%}
  {%- for name in settings -%}
    {%- if name in theirs -%}
      {%- do run_query('set `' ~ name ~ '` = `' ~ (theirs[name] | replace('`', '``')) ~ '`') -%}
    {%- else -%}
      {%- do run_query('reset `' ~ name ~ '`') -%}
    {%- endif -%}
  {%- endfor -%}
{%- endmacro %}

{% macro mv_drop(tables) -%}
  {%- for table in tables -%}{%- do run_query('drop table if exists ' ~ table) -%}{%- endfor -%}
{%- endmacro %}
