{#- An enforced contract: names and types are checked by dbt's own comparison before anything is written; NOT NULL and
    CHECK become constraints of the table. -#}
{% macro mv_check_contract(sql) -%}
  {%- if config.get('contract').enforced -%}
    {%- set assertion = get_assert_columns_equivalent(sql) -%}
  {%- endif -%}
{%- endmacro %}

{#- The constraints of an enforced contract that can be checked row by row: name and condition. -#}
{% macro mv_checks() -%}
  {%- set checks = [] -%}
  {%- if config.get('contract').enforced -%}
    {%- for constraint in model.constraints if constraint.type == 'check' -%}
      {%- do checks.append({'name': constraint.name or ('mv_check_' ~ local_md5(constraint.expression)[:8]), 'expression': constraint.expression}) -%}
    {%- endfor -%}
    {%- for name in model.columns -%}
      {%- for constraint in model.columns[name].constraints -%}
        {%- if constraint.type == 'not_null' -%}
          {%- do checks.append({'name': 'mv_not_null_' ~ local_md5(name)[:8], 'expression': adapter.quote(name) ~ ' is not null'}) -%}
        {%- elif constraint.type == 'check' -%}
          {%- do checks.append({'name': constraint.name or ('mv_check_' ~ local_md5(name ~ constraint.expression)[:8]), 'expression': constraint.expression}) -%}
        {%- endif -%}
      {%- endfor -%}
    {%- endfor -%}
  {%- endif -%}
  {{ return(checks) }}
{%- endmacro %}

{#- Open-source Spark refuses SET NOT NULL on an existing Delta column, and CREATE TABLE AS SELECT takes no column
    definitions; a CHECK constraint says the same and is enforced on every later write. -#}
{% macro mv_persist_constraints(relation) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- for check in mv.mv_checks() -%}
    {%- call statement('mv_add_check') -%}
      alter table {{ relation }} add constraint {{ adapter.quote(check['name']) }} check ({{ check['expression'] }})
    {%- endcall -%}
  {%- endfor -%}
{%- endmacro %}
