{#- Which of the planned situations a run is in: `first`, `next`, `full_refresh`, or `no_op` where nothing changed. A pure function of the
    plan and the facts. Conditions are those of strategies/no_op.py; where one of them is in doubt the run recomputes completely, which
    is always right. `needs`: why the adapter has to run once. -#}
{% macro mv_planned_choice(planned, facts) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- set table, wanted = facts['table'], planned['record'] -%}
  {%- if table is none -%}{{ return({'situation': 'first', 'why': 'the table does not exist yet'}) }}{%- endif -%}
  {%- set record = table['record'] -%}
  {%- if record is none -%}
    {{ return({'needs': "the table's history holds no record of an earlier run"}) }}
  {%- elif table['foreign'] is not none -%}
    {{ return({'needs': 'something else wrote to the table since the last run (' ~ table['foreign'] ~ ')'}) }}
  {%- elif table['forget'] -%}
    {{ return({'needs': 'forget_values asked for new values'}) }}
  {%- elif record.get('partial') or record.get('strategy') == 'ADOPTED' -%}
    {{ return({'needs': 'the table was adopted, or its last run saw only part of its sources'}) }}
  {%- elif record.get('state') or record.get('ai_pending') -%}
    {{ return({'needs': 'the last run kept draws in a table of their own, or waits for AI answers'}) }}
  {%- elif table['columns'] != planned['table_columns'] -%}
    {{ return({'needs': "the table's columns are not those of the query"}) }}
  {%- elif record.get('keys', []) | sort != wanted['keys'] | sort -%}
    {{ return({'needs': 'unique_key is not what it was'}) }}
  {%- elif table['partition_by'] != planned['partition_by'] or table['cluster_by'] != planned['cluster_by'] -%}
    {{ return({'needs': 'the table is partitioned or clustered in another way'}) }}
  {%- endif -%}
  {%- for name in wanted['columns'] if name in wanted['kept'] or name in wanted['keys'] -%}
    {%- if record.get('columns', {}).get(name) != wanted['columns'][name] -%}
      {{ return({'needs': 'the expression of column ' ~ name ~ ' is not what it was'}) }}
    {%- endif -%}
  {%- endfor -%}
  {%- if facts['full_refresh'] -%}{{ return({'situation': 'full_refresh', 'why': '--full-refresh asks for a rebuild'}) }}{%- endif -%}
  {%- set moved = facts['pins'] != record.get('pins', {}) -%}
  {%- set due = record.get('next_change_at') is not none and facts['as_of'] >= record['next_change_at'] -%}
  {%- if planned['refresh'] == 'full' -%}
    {%- set why = 'refresh: full asks for a complete recompute' -%}
  {%- elif record['query'] != wanted['query'] or record.get('functions') or record.get('kept', {}) != wanted['kept'] -%}
    {%- set why = "the model's SQL changed" -%}
  {%- elif record['config'] != wanted['config'] -%}
    {%- set why = 'settings that change rows were edited' -%}
  {%- elif table.get('ask_again') and table['ask_again'] != record.get('ask_again', '') -%}
    {%- set why = 'recompute_ai asked for new AI answers' -%}
  {%- elif record.get('settings') != facts['settings'] or record['time_zone'] != planned['time_zone'] -%}
    {%- set why = 'the session has other settings' -%}
  {%- elif mv.mv_differs_in(planned['session_pins'], facts['pins'], record.get('pins', {})) -%}
    {%- set why = 'the user or the session is another one' -%}
  {%- elif moved and (planned['clock_elsewhere'] or not record.get('clock_solved', true)) -%}
    {%- set why = 'the result follows the clock, which moved' -%}
  {%- elif moved and (due or facts['as_of'] < record['as_of']) -%}
    {%- set why = 'rows enter or leave their window' -%}
  {%- elif record['sources'] != facts['sources'] -%}
    {#- and nothing else -#}
    {%- set changed = [] -%}
    {%- for name in facts['sources'] if record['sources'].get(name) != facts['sources'][name] -%}{%- do changed.append(name) -%}{%- endfor -%}
    {{ return({'situation': 'next', 'why': 'a source changed', 'changed': changed}) }}
  {%- else -%}
    {{ return({'situation': 'no_op', 'why': 'no source changed, and no row enters or leaves by the clock'}) }}
  {%- endif -%}
  {{ return({'situation': 'next', 'why': why}) }}
{%- endmacro %}

{#- Whether the two say something else of one of the names. -#}
{% macro mv_differs_in(names, now, before) -%}
  {%- for name in names if now.get(name) != before.get(name) -%}{{ return(true) }}{%- endfor -%}
  {{ return(false) }}
{%- endmacro %}
