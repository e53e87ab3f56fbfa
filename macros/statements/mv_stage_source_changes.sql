{#- Write down what changed in one source between two versions: each row that came or went with the number of its copies
    (`__mv_count`, negative for rows that went). Netted by content, because an overwrite reports every row as deleted and
    inserted again, and a row that stayed the same must not be drawn or paid anew. `shared`: rows that are netted already, with more
    columns. -#}
{% macro default__mv_stage_source_changes(args) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
{{ mv.mv_stage_into(args) }}
{%- if args['how'] == 'feed' and args['append_only'] %}
select {% for column in args['columns'] %}{{ adapter.quote(column['name']) }}, {% endfor %}cast(1 as bigint) as __mv_count
from table_changes('{{ args['source'] }}', {{ args['low'] + 1 }}, {{ args['high'] }})
{%- elif args['how'] == 'shared' and args['append_only'] %}
select {% for column in args['columns'] %}{{ adapter.quote(column['name']) }}, {% endfor %}__mv_count
from {{ args['source'] }}
{%- elif args['how'] == 'appended' %}
select {% for column in args['columns'] %}{{ adapter.quote(column['name']) }}, {% endfor %}cast(1 as bigint) as __mv_count
from {{ args['source'] }} {{ args['between'] }}
{%- else %}
select
  {%- for column in args['columns'] %}
  {% if column['atomic'] %}{{ adapter.quote(column['name']) }}{% else %}any_value({{ adapter.quote(column['name']) }}) as {{ adapter.quote(column['name']) }}{% endif %},
  {%- endfor %}
  sum(__mv_sign) as __mv_count
from (
  {%- if args['how'] == 'feed' %}
  select *, case when _change_type in ('insert', 'update_postimage') then 1 else -1 end as __mv_sign
  from table_changes('{{ args['source'] }}', {{ args['low'] + 1 }}, {{ args['high'] }})
  {%- elif args['how'] == 'shared' %}
  select *, __mv_count as __mv_sign from {{ args['source'] }}
  {%- elif args['how'] == 'changelog' %}
  select *, case when _change_type = 'INSERT' then 1 else -1 end as __mv_sign
  from {{ args['source'] }}.changes {{ args['between'] }}
  {%- elif args['how'] == 'lineage' %}
  {#- a row without an id or a number counts as gone and as come: what did not change is netted #}
  select *, 1 as __mv_sign
  from {{ args['source'] }} version as of {{ args['high'] }}
  where not coalesce(_last_updated_sequence_number <= {{ args['sequence'] }}, false)
  union all
  select {% for column in args['columns'] %}__mv_before.{{ adapter.quote(column['name']) }}, {% endfor %}-1 as __mv_sign
  from (select *, _row_id as __mv_row_id from {{ args['source'] }} version as of {{ args['low'] }}) __mv_before
  left anti join (
    select _row_id as __mv_row_id from {{ args['source'] }} version as of {{ args['high'] }}
    where _last_updated_sequence_number <= {{ args['sequence'] }}
  ) __mv_stayed on __mv_before.__mv_row_id = __mv_stayed.__mv_row_id
  {%- else %}
  {%- for version, sign in [(args['high'], 1), (args['low'], -1)] %}
  select {% for column in args['columns'] %}{{ adapter.quote(column['name']) }}, {% endfor %}{{ sign }} as __mv_sign
  from {{ args['source'] }} version as of {{ version }}
  {{ 'union all' if not loop.last }}
  {%- endfor %}
  {%- endif %}
)
group by
  {%- for column in args['columns'] %}
  {{ column['compared'] }}{{ ',' if not loop.last }}
  {%- endfor %}
having sum(__mv_sign) <> 0
{%- endif %}
{%- endmacro %}
