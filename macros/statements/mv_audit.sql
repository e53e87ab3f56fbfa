{#- Statements of an audit, over the staged rows that differ between the table and its recompute. -#}

{#- Rows of the table that share their key with another one, or have a NULL in it. -#}
{% macro default__mv_audit_keys(args) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
select
  coalesce(sum(__mv_more), 0) as repeated,
  min(case when __mv_more > 0 then to_json(named_struct({% for key in args['keys'] %}{{ mv.mv_text(key) }}, {{ adapter.quote(key) }}{{ ', ' if not loop.last }}{% endfor %}), map('ignoreNullFields', 'false')) end) as example
from (
  select {% for key in args['keys'] %}{{ adapter.quote(key) }}, {% endfor %}count(*) - if({% for key in args['keys'] %}{{ adapter.quote(key) }} is null{{ ' or ' if not loop.last }}{% endfor %}, 0, 1) as __mv_more
  from {{ args['target'] }}
  group by {% for key in args['keys'] %}{{ adapter.quote(key) }}{{ ', ' if not loop.last }}{% endfor %}
)
{%- endmacro %}

{#- A few of the rows that differ: their key, and what differs. -#}
{% macro default__mv_audit_examples(args) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
select
  to_json(named_struct({% for key in args['keys'] %}{{ mv.mv_text(key) }}, q.{{ adapter.quote(key) }}{{ ', ' if not loop.last }}{% endfor %}), map('ignoreNullFields', 'false')) as key,
  case q.__mv_op when 'I' then 'missing' when 'D' then 'too many' else concat_ws(', '
    {%- for column in args['named'] %},
    case when {{ column['differs'] }} then {{ column['name'] }} end
    {%- endfor %}
  ) end as what
from {{ args['stage'] }} q
left join {{ args['target'] }} t
on {% for key in args['keys'] %}q.{{ adapter.quote(key) }} = t.{{ adapter.quote(key) }}{{ ' and ' if not loop.last }}{% endfor %}
where q.__mv_op in ('I', 'U', 'D')
order by key
limit 5
{%- endmacro %}

{#- How many rows differ only in what depends on an order that the query leaves open, or in the rounding of sums. -#}
{% macro default__mv_audit_watched(args) -%}
select count_if({{ args['unordered'] }}) as unordered
from (
{{ args['query'] }}
) q
join {{ args['target'] }} t
on {% for key in args['keys'] %}q.{{ adapter.quote(key) }} = t.{{ adapter.quote(key) }}{{ ' and ' if not loop.last }}{% endfor %}
{%- endmacro %}
