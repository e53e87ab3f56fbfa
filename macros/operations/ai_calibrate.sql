{#- The threshold of a cascade from a target: asks both models about a sample of a column's inputs, and finds the lowest confidence from which
    on the small model's answers are the large one's often enough. Writes nothing but answers into ai_results.

    dbt run-operation ai_calibrate --args '{data: tickets, call: "ai_classify(body, array(\"complaint\", \"praise\"))", agree_with_large: 0.95, sample: 400}'
    ai: words of the ai block, e.g. {cascade: [{model: small}, {model: large}]}, where the profile has no cascade -#}
{% macro ai_calibrate(data, call, agree_with_large=0.95, sample=400, ai=none) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- do mv.mv_no_others('ai_calibrate', ['data', 'call', 'agree_with_large', 'sample', 'ai'], kwargs) -%}
  {%- set asked = {'data': mv.mv_relation_of(data), 'call': render(call), 'agree_with_large': agree_with_large, 'sample': sample, 'ai': ai} -%}
  {%- do log(adapter.mv_ai_calibrate(asked, target.schema, invocation_id, project_name), info=true) -%}
{%- endmacro %}
