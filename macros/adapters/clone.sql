{#- dbt's own materialization: it leaves a table alone that would be cloned onto itself, where dbt-spark's older copy
    replaces it by a clone of what it has just dropped. -#}
{% materialization clone, adapter='spark_mv' %}
  {%- set file_format = config.get('file_format') -%}
  {%- if file_format != 'delta' -%}
    {{ exceptions.raise_compiler_error(
        "Invalid file format: " ~ file_format ~ "\nOnly Delta tables can be cloned, so the model's file_format must be delta"
    ) }}
  {%- endif -%}
  {{ return(materialization_clone_default()) }}
{% endmaterialization %}


{#- Open-source Delta clones into no table that has rows, also not with `create or replace` -#}
{% macro spark_mv__create_or_replace_clone(this_relation, defer_relation) -%}
  {%- set there = load_cached_relation(this_relation) -%}
  {%- if there is not none -%}{%- do adapter.drop_relation(there) -%}{%- endif -%}
  {#- the draws of a random filter, which no column of the table tells #}
  {%- if model.config.materialized == 'nondeterministic_mv' -%}
    {%- set state = adapter.get_relation(defer_relation.database, defer_relation.schema, defer_relation.identifier ~ '__state') -%}
    {%- set copy = this_relation.incorporate(path={'identifier': this_relation.identifier ~ '__state'}) -%}
    {%- set former = adapter.get_relation(copy.database, copy.schema, copy.identifier) -%}
    {%- if former is not none -%}{%- do adapter.drop_relation(former) -%}{%- endif -%}
    {%- if state is not none -%}{%- do adapter.mv_clone_state(state, copy) -%}{%- endif -%}
  {%- endif -%}
  create table {{ this_relation }} shallow clone {{ defer_relation }}
{%- endmacro %}
