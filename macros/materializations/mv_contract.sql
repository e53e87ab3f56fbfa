{#- An enforced contract: names and types are checked by dbt's own comparison before anything is written; NOT NULL and
    CHECK become constraints of the table. -#}
{% macro mv_check_contract(sql) -%}
  {%- set assertion = get_assert_columns_equivalent(sql) -%}
{%- endmacro %}

{#- Open-source Spark refuses SET NOT NULL on an existing Delta column, and CREATE TABLE AS SELECT takes no column
    definitions; a CHECK constraint says the same and is enforced on every later write. -#}
{% macro mv_persist_constraints(relation) -%}
  {%- if config.get('contract').enforced -%}
    {%- for constraint in model.constraints if constraint.type == 'check' -%}
      {%- do mv_add_check(relation, constraint.name or ('mv_check_' ~ loop.index), constraint.expression) -%}
    {%- endfor -%}
    {%- for name in model.columns -%}
      {%- set column = model.columns[name] -%}
      {%- for constraint in column.constraints -%}
        {%- if constraint.type == 'not_null' -%}
          {%- do mv_add_check(relation, 'mv_not_null_' ~ local_md5(name)[:8], adapter.quote(name) ~ ' is not null') -%}
        {%- elif constraint.type == 'check' -%}
          {%- do mv_add_check(relation, constraint.name or ('mv_check_' ~ local_md5(name ~ constraint.expression)[:8]), constraint.expression) -%}
        {%- endif -%}
      {%- endfor -%}
    {%- endfor -%}
  {%- endif -%}
{%- endmacro %}

{% macro mv_add_check(relation, name, expression) -%}
  {%- call statement('mv_add_check') -%}
    alter table {{ relation }} add constraint {{ name }} check ({{ expression }})
  {%- endcall -%}
{%- endmacro %}
