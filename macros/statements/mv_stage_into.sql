{#- The beginning of a statement that stages rows. `held`: the session keeps them in memory (held_rows.py). -#}
{% macro mv_stage_into(args) -%}
create table {{ args['into'] }} using {{ 'memory' if args.get('held') else 'parquet' }} as
{%- endmacro %}
