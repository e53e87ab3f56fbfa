{#- `--empty` and `--sample` hand over sources of which rows are missing on purpose. What they lack must not be taken
    for deleted, so an existing table is left as it is. -#}
{% macro mv_is_guarded(existing_relation) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {{ return(mv.mv_partial() and existing_relation is not none) }}
{%- endmacro %}

{#- dbt puts --sample (and DBT_SAMPLE) among the arguments of the invocation, not among `flags`. -#}
{% macro mv_partial() -%}
  {%- set given = invocation_args_dict if invocation_args_dict is defined else {} -%}
  {{ return(true if flags.EMPTY or given.get('sample') else false) }}
{%- endmacro %}

{% macro mv_skip_guarded(relation) -%}
  {%- set flag = '--empty' if flags.EMPTY else '--sample' -%}
  {%- do exceptions.warn(
      model.name ~ ": " ~ flag ~ " gives only part of the sources, and a nondeterministic_mv keeps values that are drawn "
      ~ "or paid once, so " ~ relation ~ " was left as it is"
  ) -%}
  {%- do store_raw_result(name='main', message='SKIPPED ' ~ flag ~ ' never touches kept data', code='SKIPPED', rows_affected=0) -%}
{%- endmacro %}
