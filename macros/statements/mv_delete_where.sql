{#- Publish the going of rows that the table's own columns tell: files that hold no such row are not read, files that hold
    no other are dropped, in the rest the rows are marked in deletion vectors. -#}
{% macro default__mv_delete_where(args) -%}
delete from {{ args['relation'] }}
where {{ args['predicate'] }}
{%- endmacro %}
