{#- What the table's history tells (formats/history.py): the newest record of this model, and whether others changed rows since. -#}
{% macro mv_planned_history(planned, relation) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- set ns = namespace(found=none) -%}
  {%- for limit in [' limit 20', ''] if ns.found is none -%}
    {%- set rows = run_query('describe history ' ~ relation ~ limit).rows -%}
    {%- set history = mv.mv_history_of(planned['history'], rows, model.unique_id) -%}
    {%- if history['reached'] or limit == '' or rows | length < 20 -%}{%- set ns.found = history -%}{%- endif -%}
  {%- endfor -%}
  {{ return(ns.found) }}
{%- endmacro %}

{#- `rows`: commits, newest first. `reached`: whether they go back to the version up to which requests were honoured. -#}
{% macro mv_history_of(rules, rows, unique_id) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- set ns = namespace(record=none, version=none, base=none, done=none, foreign=none, forget=false) -%}
  {%- for row in rows -%}
    {%- set operation, version = row['operation'], row['version'] | int -%}
    {%- if ns.record is none -%}
      {%- set record = mv.mv_record_in(rules, rows, loop.index0, unique_id) -%}
      {%- if record is not none -%}
        {%- set ns.record, ns.version = record, version -%}
        {%- set ns.base = version - 1 if record.get('base_version') is none else record['base_version'] -%}
        {%- set ns.done = ns.base if record.get('honoured') is none else record['honoured'] -%}
        {%- if operation in rules['makes_all_rows'] -%}{%- set ns.base = version -%}{%- endif -%}
      {%- elif operation not in rules['keeps_rows'] -%}
        {%- set ns.foreign = operation -%}
      {%- endif -%}
    {%- elif version > ns.base and operation not in rules['keeps_rows'] -%}
      {%- set ns.foreign = operation -%}
    {%- endif -%}
  {%- endfor -%}
  {%- for row in rows if '"spark_mv_forget"' in (row['userMetadata'] or '') and (ns.done is none or (row['version'] | int) > ns.done) -%}
    {%- set ns.forget = true -%}
  {%- endfor -%}
  {{ return({
      'version': rows[0]['version'] | int,
      'record': ns.record,
      'record_version': ns.version,
      'foreign': ns.foreign,
      'forget': ns.forget,
      'reached': ns.record is not none and (rows[-1]['version'] | int) <= ns.done + 1,
  }) }}
{%- endmacro %}

{#- The record in a commit of this model's runs, or none: what is copied from another commit is none. -#}
{% macro mv_record_in(rules, rows, position, unique_id) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- set row = rows[position] -%}
  {%- set text = row['userMetadata'] or '' -%}
  {%- if '"spark_mv":' not in text | replace(' ', '') or row['operation'] not in rules['ours'] -%}{{ return(none) }}{%- endif -%}
  {%- set record = fromjson(text, none) -%}
  {%- if record is not mapping or record.get('spark_mv') is not number -%}{{ return(none) }}{%- endif -%}
  {%- for name in record if record['spark_mv'] > 1 or name not in rules.get('fields', record) -%}
    {%- do mv.mv_newer('its table holds a record that') -%}
  {%- endfor -%}
  {%- if record.get('base_version') is none and row['operation'] not in rules['makes_all_rows'] -%}{{ return(none) }}{%- endif -%}
  {%- if record.get('model') and record['model'] != unique_id -%}{{ return(none) }}{%- endif -%}
  {%- for older in rows[position + 1:] if record.get('run_id') and record['run_id'] in (older['userMetadata'] or '') -%}
    {{ return(none) }}
  {%- endfor -%}
  {{ return(record) }}
{%- endmacro %}
