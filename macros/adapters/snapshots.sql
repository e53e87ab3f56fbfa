{#- dbt's own materialization, which knows list keys and all ways of deletion; dbt-spark's older copy of it knows
    neither, and leaves a view in the schema when it fails. -#}
{% materialization snapshot, adapter='spark_mv' %}
  {%- set file_format = config.get('file_format') -%}
  {%- if file_format not in ['delta', 'iceberg', 'hudi'] -%}
    {{ exceptions.raise_compiler_error(
        "Invalid file format: " ~ file_format ~ "\nA snapshot merges into its table, so its file_format must be delta, iceberg or hudi"
    ) }}
  {%- endif -%}
  {{ return(materialization_snapshot_default()) }}
{% endmaterialization %}


{#- a temporary view belongs to this connection: nobody else sees it, nothing is left behind -#}
{% macro spark_mv__build_snapshot_staging_table(strategy, sql, target_relation) -%}
  {%- set staging = api.Relation.create(
      database=none, schema=none, identifier=target_relation.identifier ~ '__dbt_tmp', type='view'
  ) -%}
  {%- call statement('build_snapshot_staging_relation') -%}
    create or replace temporary view {{ staging }} as
    {{ snapshot_staging_table(strategy, sql, target_relation) }}
  {%- endcall -%}
  {{ return(staging) }}
{%- endmacro %}


{% macro spark_mv__post_snapshot(staging_relation) -%}
  {%- do run_query('drop view if exists ' ~ staging_relation) -%}
{%- endmacro %}


{#- dbt-spark inserts `*`, which fails once the query has lost a column that the snapshot keeps -#}
{% macro spark_mv__snapshot_merge_sql(target, source, insert_cols) -%}
  {{ default__snapshot_merge_sql(target, source, insert_cols) }}
{%- endmacro %}


{#- dbt's materialization asks for the model's database; a model on Spark has none, which is not the same as NULL -#}
{% macro spark_mv__get_or_create_relation(database, schema, identifier, type) -%}
  {{ return(default__get_or_create_relation(none, schema, identifier, type)) }}
{%- endmacro %}
