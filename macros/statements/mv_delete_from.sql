{#- Drop from the state table what the staged rows mark as gone. -#}
{% macro default__mv_delete_from(args) -%}
merge into {{ args['relation'] }} t
using (select * from {{ args['stage'] }} where __mv_op = 'D') s
on {% for key in args['keys'] %}t.{{ adapter.quote(key) }} = s.{{ adapter.quote(key) }}{{ ' and ' if not loop.last }}{% endfor %}
when matched then delete
{%- endmacro %}
