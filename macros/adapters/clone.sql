{#- Open-source Delta clones into no table that has rows, also not with `create or replace` -#}
{% macro spark_mv__create_or_replace_clone(this_relation, defer_relation) -%}
  {%- do run_query('drop table if exists ' ~ this_relation) -%}
  create table {{ this_relation }} shallow clone {{ defer_relation }}
{%- endmacro %}
