{#- The SELECT of the model. A Python model's code has run by then, and its frame is a table beside the model's, which the SELECT reads
    whole: what differs from the last frame is written, and frozen columns keep their values. -#}
{% macro mv_query(target_relation, compiled_code) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {{ return(mv.mv_frame_query(target_relation) if model.get('language') == 'python' else compiled_code) }}
{%- endmacro %}

{#- What is refused is refused before a Python model's code runs. -#}
{% macro mv_before_frame(target_relation, existing_relation) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- do mv.mv_need_adapter() -%}
  {%- do adapter.mv_before_python(mv.mv_invocation(model, target_relation, existing_relation, mv.mv_frame_query(target_relation))) -%}
{%- endmacro %}

{% macro mv_frame_query(relation) -%}
  {{ return('select * from ' ~ adapter.mv_frame(relation)) }}
{%- endmacro %}
