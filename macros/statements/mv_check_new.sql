{#- Rows staged as new whose key the table has already: the query gives two rows of one key, or the row of the table leaves
    in this run. -#}
{% macro default__mv_check_new(args) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
select
  count_if(not __mv_leaves) as duplicate_keys,
  min(case when not __mv_leaves then to_json(named_struct({% for key in args['keys'] %}{{ mv.mv_text(key) }}, s.{{ adapter.quote(key) }}{{ ', ' if not loop.last }}{% endfor %})) end) as duplicate_example,
  count_if(__mv_leaves) as returned_keys
from {{ mv.mv_staged(args) }} s
join (
  select {% for key in args['keys'] %}{{ adapter.quote(key) }}, {% endfor %}{{ args.get('leaves') or 'false' }} as __mv_leaves
  from {{ args['target'] }}
) t
on {% for key in args['keys'] %}s.{{ adapter.quote(key) }} = t.{{ adapter.quote(key) }}{{ ' and ' if not loop.last }}{% endfor %}
where s.__mv_op = 'I'
{%- endmacro %}
