{#- Write down the rows of a query: which rows a change can touch (their anchor columns, and whether the table may hold rows of
    them), or rows that are ready to be published. -#}
{% macro default__mv_stage_query(args) -%}
create table {{ args['into'] }} using parquet as
{{ args['query'] }}
{%- endmacro %}
