{#- A description as a string literal of Spark. -#}
{% macro mv_comment_literal(text) -%}
  {{ mv_text(text) }}
{%- endmacro %}


{% macro spark_mv__comment_clause() -%}
  {%- set persist = config.get('persist_docs', {}) -%}
  {%- if persist is not mapping -%}
    {{ exceptions.raise_compiler_error("Invalid value provided for 'persist_docs'. Expected dict but got value: " ~ persist) }}
  {%- endif -%}
  {%- if persist.get('relation', false) and model.description %}
    comment {{ mv_comment_literal(model.description) }}
  {%- endif -%}
{%- endmacro %}


{#- One ALTER for all columns would be refused by Spark; names are always quoted, which never hurts. A view has its descriptions from the
    statement that makes it, and takes no others. -#}
{% macro spark_mv__alter_column_comment(relation, column_dict) -%}
  {%- if config.get('file_format') in ['delta', 'hudi', 'iceberg'] and not relation.is_view -%}
    {%- for name in column_dict if column_dict[name]['description'] -%}
      {%- do run_query(
          'alter table ' ~ relation ~ ' alter column ' ~ adapter.quote(name)
          ~ ' comment ' ~ mv_comment_literal(column_dict[name]['description'])
      ) -%}
    {%- endfor -%}
  {%- endif -%}
{%- endmacro %}


{% macro spark_mv__create_view_as(relation, sql) -%}
  {%- set contract_config = config.get('contract') -%}
  {%- if contract_config.enforced -%}
    {{ get_assert_columns_equivalent(sql) }}
  {%- endif -%}
  {{ config.get('sql_header', '') or '' }}
  create or replace view {{ relation }}
  {%- if config.persist_column_docs() and model.columns %}
  (
    {%- set described = {} -%}
    {%- for column in model.columns.values() -%}{%- do described.update({column['name'] | lower: column['description']}) -%}{%- endfor -%}
    {%- for name in get_columns_in_query(sql) -%}
      {{ adapter.quote(name) }}
      {%- if described.get(name | lower) %} comment {{ mv_comment_literal(described[name | lower]) }}{% endif -%}
      {{ ', ' if not loop.last }}
    {%- endfor -%}
  )
  {%- endif %}
  {{ comment_clause() }}
  as
    {{ sql }}
{%- endmacro %}
