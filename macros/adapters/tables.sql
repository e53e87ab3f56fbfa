{#- Only what dbt-spark does not do: constraints before rows (see adapter/spark_mv/spark/adapter/contract.py), and Python
    models in this process. -#}
{% macro spark_mv__create_table_as(temporary, relation, compiled_code, language='sql') -%}
  {%- set contract_config = config.get('contract') -%}
  {%- if language == 'python' -%}
    {{ mv_python_write_table(compiled_code, relation) }}
  {%- elif not temporary and contract_config.enforced and config.get('file_format') == 'delta' -%}
    {{ mv_create_contracted_table(relation, compiled_code) }}
  {%- else -%}
    {{ spark__create_table_as(temporary, relation, compiled_code, language) }}
  {%- endif -%}
{%- endmacro %}


{#- where a catalogue of Iceberg's stands behind Delta's, its DROP takes any table out of the metastore and leaves the files, and the name cannot
    be used again -#}
{% macro spark_mv__drop_relation(relation) -%}
  {%- call statement('drop_relation', auto_begin=False) -%}
    drop {{ relation.type }} if exists {{ relation }}{{ adapter.drop_takes(relation) }}
  {%- endcall -%}
{%- endmacro %}


{% macro mv_create_contracted_table(relation, compiled_code) -%}
  {{ get_assert_columns_equivalent(compiled_code) }}
  {%- set contract = adapter.read_contract(model) -%}
  {%- set clauses -%}
    {{ file_format_clause() }}
    {{ options_clause() }}
    {{ partition_cols(label="partitioned by") }}
    {{ clustered_cols(label="clustered by") }}
    {{ location_clause() }}
    {{ comment_clause() }}
  {%- endset -%}
  {%- set select -%}
    {{ get_select_subquery(compiled_code) }}
  {%- endset -%}
  {%- if not contract.constrained -%}
    create or replace table {{ relation }}
    {{ clauses }}
    {{ tblproperties_clause() }}
    as
    {{ select }}
  {%- else -%}
    {%- set tblproperties = config.get('tblproperties') or {} -%}
    {%- set fingerprint = contract.fingerprint(clauses ~ tblproperties) -%}
    {%- set existing = load_relation(relation) -%}
    {%- if existing is not none and existing.is_delta and adapter.carries_contract(relation, fingerprint) -%}
      insert overwrite table {{ relation }}
      {{ select }}
    {%- else -%}
      {%- do adapter.undo_unless_settled(relation, existing is not none and existing.is_delta) -%}
      {%- call statement('create_with_constraints') -%}
        create or replace table {{ relation }} (
          {{ contract.columns_ddl }}
        )
        {{ clauses }}
        tblproperties (
          {%- for key in tblproperties -%}
            '{{ key }}' = '{{ tblproperties[key] }}',
          {%- endfor -%}
          'dbt.contract' = '{{ fingerprint }}'
        )
      {%- endcall -%}
      {%- for check in contract.checks -%}
        {%- call statement('add_check') -%}
          alter table {{ relation }} add constraint {{ adapter.quote(check.name) }} check ({{ check.expression }})
        {%- endcall -%}
      {%- endfor -%}
      insert into {{ relation }}
      {{ select }}
    {%- endif -%}
  {%- endif -%}
{%- endmacro %}


{#- constraints came before the rows; now that these are in, there is nothing to take back -#}
{% macro spark_mv__persist_constraints(relation, model) -%}
  {%- do adapter.settled() -%}
{%- endmacro %}


{#- `plain`: a table for the work of a run, without the layout of the model's own. -#}
{% macro mv_python_write_table(compiled_code, target_relation, plain=false) %}
{{ compiled_code }}
# --- the table of the model's result, written by dbt
dbt = dbtObj(spark.table)
df = model(dbt, spark)

if not (hasattr(df, "write") and hasattr(df, "schema")):
    if hasattr(df, "to_spark"):  # pandas on Spark
        df = df.to_spark()
    elif type(df).__module__.split(".")[0] in ("pandas", "pyarrow"):
        df = spark.createDataFrame(df)
    else:
        raise TypeError(f"{type(df)} is not a supported type for a dbt Python model: return a Spark, pandas or pandas-on-Spark DataFrame")

writer = df.write.mode("overwrite").format("{{ 'delta' if plain else config.get('file_format') or 'delta' }}").option("overwriteSchema", "true")
{%- set keys = config.get('partition_by') %}
{%- if keys and not plain %}
writer = writer.partitionBy(*{{ [keys] if keys is string else keys }})
{%- endif %}
{%- if config.get('location_root') and not plain %}
writer = writer.option("path", "{{ config.get('location_root') }}/{{ model['alias'] }}")
{%- endif %}
writer.saveAsTable("{{ target_relation }}")
{%- endmacro %}
