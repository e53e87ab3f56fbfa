{#- AI functions without the adapter (provider: native): the engine's own functions answer what the result table lacks, by INSERT … SELECT, a
    statement for each call of the query. What it answers is kept before the table of the model is touched, and is never paid again. -#}

{#- The result table, made where it is missing. -#}
{% macro mv_planned_answers(answers) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- do run_query(answers['create']) -%}
  {%- for row in run_query('show tblproperties ' ~ answers['table']).rows if row[0] == 'spark_mv.format' and row[1] | string != '1' -%}
    {%- do mv.mv_newer('the table of AI answers (' ~ answers['table'] ~ ') is one that') -%}
  {%- endfor -%}
  {%- set there = [] -%}
  {%- for column in mv.mv_columns_of('describe table ' ~ answers['table']) -%}{%- do there.append(column.split(' ')[0]) -%}{%- endfor -%}
  {%- for name in answers['columns'] if name not in there -%}
    {%- do mv.mv_adapter_once('the table of AI answers (' ~ answers['table'] ~ ') is one of an earlier version, without the column ' ~ name) -%}
  {%- endfor -%}
  {%- for name in there if name not in answers['columns'] -%}
    {%- do mv.mv_plan_again('the table of AI answers (' ~ answers['table'] ~ ') has a column that the plan does not know, ' ~ name) -%}
  {%- endfor -%}
{%- endmacro %}

{#- One round of calls. Returns how many inputs were asked. -#}
{% macro mv_planned_ai(args) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- set counts, ns = mv.mv_asked(args['counts']), namespace(calls=0) -%}
  {%- if counts['waiting'] -%}
    {%- do mv.mv_adapter_once(counts['waiting'] ~ ' inputs of its AI functions failed before, or wait in a batch') -%}
  {%- elif counts['unclaimed'] -%}
    {%- do run_query(args['claims']) -%}
  {%- endif -%}
  {%- for sql in args['inserts'] -%}
    {%- set missing = counts['missing_' ~ loop.index0] -%}
    {%- if missing -%}{%- do run_query(sql) -%}{%- endif -%}
    {%- set ns.calls = ns.calls + missing -%}
  {%- endfor -%}
  {{ return(ns.calls) }}
{%- endmacro %}
