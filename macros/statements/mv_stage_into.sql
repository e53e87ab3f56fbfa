{#- The beginning of a statement that stages rows. `held`: the session keeps them in memory (held_rows.py). Unity Catalog manages tables in
    Delta's format alone. -#}
{% macro mv_stage_into(args) -%}
create table {{ args['into'] }} using {{ 'memory' if args.get('held') else 'delta' if adapter.type() == 'databricks' else 'parquet' }} as
{%- endmacro %}
