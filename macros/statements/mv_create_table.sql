{#- Publish all staged rows as a table that is not there yet: the first run. It never replaces one: whoever made a table of
    that name meanwhile, another first run perhaps, has rows and kept values in it. -#}
{% macro default__mv_create_table(args) -%}
create table {{ args['relation'] }}
{{ mv_table_of_stage(args) }}
{%- endmacro %}
