{#- Of the rows that go, how many the clock takes: those that the query still has when its window is left open. Without a
    query, all of them: no source has changed. -#}
{% macro default__mv_count_evicted(args) -%}
select count(*) as evicted
from {{ args['stage'] }} s
{%- if args['query'] is not none %}
left semi join (
  select * from {% if args['is_relation'] %}{{ args['query'] }}{% else %}(
{{ args['query'] }}
  ){% endif %}
  where __mv_valid_to <= {{ args['as_of'] }}
) q
on {% for key in args['keys'] %}s.{{ adapter.quote(key) }} = q.{{ adapter.quote(key) }}{{ ' and ' if not loop.last }}{% endfor %}
{%- endif %}
where s.__mv_op = 'D'
{%- endmacro %}
