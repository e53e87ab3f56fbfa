{#- Publish a small number of staged rows: Delta deletes the old rows by deletion vector (those of the staged keys, or those
    that leave by the clock) and appends the new ones in one commit, two to three times quicker than MERGE, which reads the
    table twice. -#}
{% macro default__mv_replace_where(args) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
insert into {{ args['relation'] }}
replace where {{ args['predicate'] }}
select
  {%- for column in args['columns'] %}
  {{ adapter.quote(column['name']) }}{{ ',' if not loop.last }}
  {%- endfor %}
from {{ mv.mv_staged(args) }}
where __mv_op <> 'D'
{%- endmacro %}
