{#- An enforced contract: names and types are checked by dbt's own comparison before anything is written; NOT NULL and
    CHECK become constraints of the table. -#}
{% macro mv_check_contract(sql) -%}
  {%- if config.get('contract').enforced -%}
    {%- set assertion = get_assert_columns_equivalent(sql) -%}
  {%- endif -%}
{%- endmacro %}

{#- The constraints of an enforced contract that can be checked row by row: name and condition. -#}
{% macro mv_checks() -%}
  {{ return(adapter.read_contract(model).row_checks if config.get('contract').enforced else []) }}
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
