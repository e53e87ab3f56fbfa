{#- A seed is one CREATE … AS SELECT over its rows, so that readers never see it half filled. Where the session of the
    connection is not in this process, the table is created and filled by INSERTs of exact literals. -#}

{% macro spark_mv__create_csv_table(model, agate_table) -%}
  {%- set columns = adapter.seed_columns(agate_table, model['config'].get('column_types', {}), model['config'].get('quote_columns', none)) -%}
  {%- set view = adapter.quote(model['alias'] ~ '__dbt_seed') -%}
  {%- set source = adapter.seed_source(view, columns, agate_table) if agate_table.rows | length > 0 else none -%}
  {%- set replaces = config.get('file_format') in ['delta', 'iceberg'] -%}
  {% set sql %}
    create {{ 'or replace ' if replaces }}table {{ this.render() }}
    {%- if source is none %} (
      {%- for column in columns -%}
        {{ column.rendered }} {{ column.type }}{{ ', ' if not loop.last }}
      {%- endfor -%}
    )
    {%- endif %}
    {{ file_format_clause() }}
    {{ options_clause() }}
    {{ tblproperties_clause() }}
    {{ partition_cols(label="partitioned by") }}
    {{ clustered_cols(label="clustered by") }}
    {{ location_clause() }}
    {{ comment_clause() }}
    {%- if source is not none %}
    as {{ source }}
    {%- endif %}
  {% endset %}
  {% call statement('_') -%}
    {{ sql }}
  {%- endcall %}
  {%- if source is not none -%}
    {%- do run_query('drop view if exists ' ~ view) -%}
  {%- elif agate_table.rows | length > 0 -%}
    {%- for batch in adapter.seed_batches(columns, agate_table) -%}
      {%- do adapter.add_query('insert into ' ~ this.render() ~ ' ' ~ batch, abridge_sql_log=True) -%}
    {%- endfor -%}
  {%- endif -%}
  {{ return(sql) }}
{%- endmacro %}


{% macro spark_mv__reset_csv_table(model, full_refresh, old_relation, agate_table) -%}
  {%- set replaces = config.get('file_format') in ['delta', 'iceberg'] and (old_relation.is_delta or old_relation.is_iceberg) -%}
  {%- if old_relation and not replaces -%}
    {%- do adapter.drop_relation(old_relation) -%}
  {%- endif -%}
  {{ return(create_csv_table(model, agate_table)) }}
{%- endmacro %}


{#- the rows came with the CREATE -#}
{% macro spark_mv__load_csv_rows(model, agate_table) -%}
  {{ return('-- ' ~ (agate_table.rows | length) ~ ' rows') }}
{%- endmacro %}
