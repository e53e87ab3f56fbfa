{#- Column names are quoted, and under `on_schema_change` a column that the query no longer has keeps its values in old
    rows and is NULL in new ones; dbt-spark's MERGE and INSERT name it all the same, and fail. -#}

{% macro spark_mv__get_merge_sql(target, source, unique_key, dest_columns, incremental_predicates) -%}
  {%- set dest_columns = adapter.get_columns_in_relation(target) -%}
  {%- set update_columns = get_merge_update_columns(
      config.get('merge_update_columns'), config.get('merge_exclude_columns'), dest_columns
  ) -%}
  {%- set shared = mv_shared_columns(source, dest_columns) -%}
  {%- set predicates = [] if incremental_predicates is none else [] + incremental_predicates -%}
  {%- for key in ([unique_key] if unique_key is string and unique_key else unique_key or []) -%}
    {%- do predicates.append('DBT_INTERNAL_SOURCE.' ~ mv_quoted(key) ~ ' = DBT_INTERNAL_DEST.' ~ mv_quoted(key)) -%}
  {%- endfor -%}
  {%- if not unique_key -%}{%- do predicates.append('FALSE') -%}{%- endif -%}
  {{ config.get('sql_header') or '' }}
  merge into {{ target }} as DBT_INTERNAL_DEST
  using {{ source }} as DBT_INTERNAL_SOURCE
  on {{ predicates | join(' and ') }}
  when matched then update set
    {%- set names = update_columns or shared -%}
    {%- if names is none %} *
    {%- else -%}
      {%- for name in names %}
    {{ mv_quoted(name) }} = DBT_INTERNAL_SOURCE.{{ mv_quoted(name) }}{{ ',' if not loop.last }}
      {%- endfor -%}
    {%- endif %}
  when not matched then insert
    {%- if shared is none %} *
    {%- else %} ({{ shared | join(', ') }}) values (
      {%- for name in shared -%} DBT_INTERNAL_SOURCE.{{ name }}{{ ', ' if not loop.last }} {%- endfor -%}
    )
    {%- endif -%}
{%- endmacro %}


{% macro get_insert_into_sql(source_relation, target_relation) -%}
  {%- set dest_columns = adapter.get_columns_in_relation(target_relation) -%}
  {%- set names = mv_shared_columns(source_relation, dest_columns) or (dest_columns | map(attribute='quoted') | list) -%}
  insert into {{ target_relation }} ({{ names | join(', ') }})
  select {{ names | join(', ') }} from {{ source_relation }}
{%- endmacro %}


{#- The quoted names that both sides have, or none where `*` does, because no setting lets the two differ -#}
{% macro mv_shared_columns(source, dest_columns) -%}
  {%- if config.get('on_schema_change', 'ignore') == 'ignore' -%}
    {{ return(none) }}
  {%- endif -%}
  {%- set in_source = adapter.get_columns_in_relation(source) | map(attribute='name') | map('lower') | list -%}
  {%- set shared = [] -%}
  {%- for column in dest_columns if column.name | lower in in_source -%}
    {%- do shared.append(column.quoted) -%}
  {%- endfor -%}
  {{ return(shared) }}
{%- endmacro %}


{% macro mv_quoted(name) -%}
  {{ return(name if name.startswith('`') else adapter.quote(name)) }}
{%- endmacro %}
