{#- Fails when, of the distinct inputs that the model asks AI functions about, the share whose newest answer is an error (also one that will not be
    asked for again) is not below `rate`. Inputs that wait for a budget are no errors. In YAML:

    models:
      - name: tickets
        data_tests:
          - ai_error_rate_below: {arguments: {rate: 0.05}} -#}
{% test ai_error_rate_below(model, rate=0.05) %}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- if execute -%}
    {%- set node = mv.mv_tested(context['model']) -%}
    {%- if adapter.type() != 'spark_mv' or node.get('config', {}).get('materialized') != 'nondeterministic_mv' -%}
      {{ return(mv.mv_test_refused("ai_error_rate_below: " ~ node.get('name', 'this') ~ " is no nondeterministic_mv on the adapter spark_mv")) }}
    {%- endif -%}
    {%- set wrong = mv.mv_test_share("ai_error_rate_below", "rate", rate) | trim -%}
    {%- if wrong -%}{{ return(mv.mv_test_refused(wrong)) }}{%- endif -%}
    {%- if not mv.mv_tested_is_there(node) %}
select * from {{ model }}
    {%- else %}
    {%- set asked = adapter.mv_ai_answers(mv.mv_invocation_of(node)) -%}
    {%- set wrong = asked.get('refused') -%}
    {%- if wrong -%}{{ return(mv.mv_test_refused(wrong)) }}{%- endif -%}
select count_if(state = 'error') as failing, count(*) as inputs
from (
{{ asked['query'] }}
)
having count_if(state = 'error') > 0 and count_if(state = 'error') >= {{ rate }} * count(*)
    {%- endif -%}
  {%- endif -%}
{% endtest %}
