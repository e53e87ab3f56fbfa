{#- Publish the staged rows: inserts, updates, deletes and evictions in one commit. The source is the staging table
    itself, never a view or the model's SQL. Without new rows there is no INSERT clause: with it the merge is an outer
    join, for which Spark shuffles the table instead of broadcasting the staged rows. The range of the staged keys, as
    literals, lets Delta skip the files that hold none of them. -#}
{% macro default__mv_merge_into(args) -%}
  {%- set keys = args['columns'] | selectattr('role', 'equalto', 'key') | list -%}
merge into {{ args['relation'] }} t
using {{ args['stage'] }} s
on {% for key in keys %}t.{{ adapter.quote(key['name']) }} = s.{{ adapter.quote(key['name']) }}{{ ' and ' if not loop.last }}{% endfor %}
{%- if args.get('range') %} and {{ args['range'] }}{% endif %}
{%- if args.get('deletes', true) %}
when matched and s.__mv_op = 'D' then delete
{%- endif %}
when matched and s.__mv_op <> 'D' then update set
  {%- for column in args['columns'] %}
  {{ adapter.quote(column['name']) }} = s.{{ adapter.quote(column['name']) }}{{ ',' if not loop.last }}
  {%- endfor %}
{%- if args.get('inserts', true) %}
when not matched and s.__mv_op <> 'D' then insert (
  {%- for column in args['columns'] %}{{ adapter.quote(column['name']) }}{{ ', ' if not loop.last }}{% endfor -%}
) values (
  {%- for column in args['columns'] %}s.{{ adapter.quote(column['name']) }}{{ ', ' if not loop.last }}{% endfor -%}
)
{%- endif %}
{%- endmacro %}
