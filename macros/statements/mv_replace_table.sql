{#- Publish all staged rows as the new table: --full-refresh, changed columns or layout. One commit. -#}
{% macro mv_replace_table(args) -%}
  {%- set dispatch = adapter.dispatch -%}
  {{ return(dispatch('mv_replace_table', 'dbt_spark_mv' if context.get('dbt_spark_mv') else 'dbt')(args)) }}
{%- endmacro %}

{% macro default__mv_replace_table(args) -%}
create or replace table {{ args['relation'] }}
{{ mv_table_of_stage(args) }}
{%- endmacro %}

{#- What follows the name of a table that is made of the staged rows. -#}
{% macro mv_table_of_stage(args) -%}
  {%- set is_target = args['relation'] == (this | string) -%}
using delta
{{ mv_tblproperties(args['columns'], is_target) }}
{%- if is_target %}
{{ mv_layout() }}
{{ location_clause() }}
{{ comment_clause() }}
{%- endif %}
as
select
  {%- for column in args['columns'] %}
  {{ adapter.quote(column['name']) }}{{ ',' if not loop.last }}
  {%- endfor %}
from {{ args['stage'] }}
where __mv_op <> 'D'
{%- endmacro %}

{#- The user's table properties win. A feed of changes lets models downstream follow this one incrementally; deletion
    vectors spare rewriting whole files for a few rows. Delta cannot create a table from a query with both column mapping,
    which unusual column names need, and the feed. -#}
{% macro mv_tblproperties(columns, is_target) -%}
  {%- set properties = {'delta.enableDeletionVectors': 'true'} -%}
  {%- set unusual = [] -%}
  {%- for column in columns if modules.re.search('[ ,;{}()\n\t=]', column['name']) -%}{%- do unusual.append(column['name']) -%}{%- endfor -%}
  {%- if unusual -%}
    {%- do properties.update({'delta.columnMapping.mode': 'name'}) -%}
  {%- else -%}
    {%- do properties.update({'delta.enableChangeDataFeed': 'true'}) -%}
  {%- endif -%}
  {%- if is_target -%}{%- do properties.update(config.get('tblproperties') or {}) -%}{%- endif -%}
  {%- do properties.update({'spark_mv.model': model.unique_id}) -%}
tblproperties (
  {%- for name in properties %}
  '{{ name }}' = '{{ properties[name] }}'{{ ',' if not loop.last }}
  {%- endfor %}
)
{%- endmacro %}

{% macro mv_layout() -%}
  {%- set clusters = config.get('liquid_clustered_by') or config.get('cluster_by') -%}
  {%- if clusters -%}
    {%- set names = [clusters] if clusters is string else clusters -%}
cluster by ({% for name in names %}{{ adapter.quote(name) }}{{ ', ' if not loop.last }}{% endfor %})
  {%- else -%}
{{ partition_cols(label="partitioned by") }}
  {%- endif -%}
{%- endmacro %}
