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

{#- The columns whose descriptions the table is to carry. -#}
{% macro mv_described() -%}
  {%- set described = {} -%}
  {%- if config.persist_column_docs() -%}
    {%- for name in model.columns if model.columns[name]['description'] -%}
      {%- do described.update({name: model.columns[name]['description']}) -%}
    {%- endfor -%}
  {%- endif -%}
  {{ return(described) }}
{%- endmacro %}

{#- The description that the table itself is to carry. -#}
{% macro mv_about() -%}
  {{ return(model.description if config.persist_relation_docs() else '') }}
{%- endmacro %}
