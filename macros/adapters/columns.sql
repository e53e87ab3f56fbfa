{#- dbt-spark answers with the rows of DESCRIBE, where dbt's own macros expect columns -#}
{% macro spark_mv__get_columns_in_relation(relation) -%}
  {{ return(adapter.get_columns_in_relation(relation)) }}
{%- endmacro %}


{#- Delta drops columns once their names are mapped, which is a change of the table's metadata only -#}
{% macro spark_mv__alter_relation_add_remove_columns(relation, add_columns, remove_columns) -%}
  {%- set known = context.get('dbt_spark_mv', dbt).spark_mv_known(relation) -%}
  {%- if remove_columns -%}
    {%- if known.is_delta -%}
      {%- do run_query("alter table " ~ relation.render() ~ " set tblproperties ('delta.columnMapping.mode' = 'name')") -%}
    {%- elif execute and not known.is_iceberg -%}
      {{ exceptions.raise_compiler_error(
          'Only Delta and Iceberg tables can drop columns, and ' ~ relation.render() ~ ' is neither; run it with --full-refresh'
      ) }}
    {%- endif -%}
    {%- set names = remove_columns | map(attribute='quoted') | join(', ') -%}
    {%- do run_query('alter table ' ~ relation.render() ~ ' drop columns (' ~ names ~ ')') -%}
  {%- endif -%}
  {%- if add_columns -%}
    {%- set sql -%}
      alter table {{ relation.render() }} add columns (
        {%- for column in add_columns -%}
          {{ column.quoted }} {{ column.data_type }}{{ ', ' if not loop.last }}
        {%- endfor -%}
      )
    {%- endset -%}
    {%- do run_query(sql) -%}
  {%- endif -%}
{%- endmacro %}


{#- The relation as the catalogue has it: one that was put together from a name knows nothing of its format -#}
{% macro spark_mv_known(relation) -%}
  {{ return((adapter.get_relation(relation.database, relation.schema, relation.identifier) if execute else none) or relation) }}
{%- endmacro %}


{#- A wider varchar fits into the table as it is. Every other new type goes through a second column, which works on
    Delta with mapped names and on Iceberg; Spark itself widens only a few. -#}
{% macro spark_mv__alter_column_type(relation, column_name, new_column_type) -%}
  {%- set name = adapter.quote(column_name) -%}
  {%- set known = context.get('dbt_spark_mv', dbt).spark_mv_known(relation) -%}
  {%- if not (known.is_delta or known.is_iceberg) -%}
    {%- do run_query('alter table ' ~ relation.render() ~ ' alter column ' ~ name ~ ' type ' ~ new_column_type) -%}
  {%- else -%}
    {%- set temporary = adapter.quote(column_name ~ '__dbt_alter') -%}
    {%- if known.is_delta -%}
      {%- do run_query("alter table " ~ relation.render() ~ " set tblproperties ('delta.columnMapping.mode' = 'name')") -%}
    {%- endif -%}
    {%- do run_query('alter table ' ~ relation.render() ~ ' add columns (' ~ temporary ~ ' ' ~ new_column_type ~ ' after ' ~ name ~ ')') -%}
    {%- do run_query('update ' ~ relation.render() ~ ' set ' ~ temporary ~ ' = cast(' ~ name ~ ' as ' ~ new_column_type ~ ')') -%}
    {%- do run_query('alter table ' ~ relation.render() ~ ' drop columns (' ~ name ~ ')') -%}
    {%- do run_query('alter table ' ~ relation.render() ~ ' rename column ' ~ temporary ~ ' to ' ~ name) -%}
  {%- endif -%}
{%- endmacro %}
