{#- Fails with rows that should have left: whose `column` lies more than `interval` (and `grace`, a day, for the time between runs) before the
    invocation's instant, or ahead of it where `future` is false. In YAML:

    models:
      - name: tickets
        columns:
          - name: created_at
            data_tests:
              - window_respected: {arguments: {interval: 30 days}}
              - window_respected: {arguments: {interval: 12 hours, grace: 15 minutes}} -#}
{% test window_respected(model, interval=none, column=none, column_name=none, grace='1 day', future=true) %}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- if execute -%}
  {%- set node = mv.mv_tested(context['model']) -%}
  {%- set stands_on = column or column_name -%}
  {%- if not stands_on -%}
    {{ return(mv.mv_test_refused("window_respected: name the `column` that the window stands on")) }}
  {%- endif -%}
  {%- set wrong = mv.mv_test_interval("window_respected", "interval", interval) | trim or mv.mv_test_interval("window_respected", "grace", grace) | trim -%}
  {%- if wrong -%}{{ return(mv.mv_test_refused(wrong)) }}{%- endif -%}
select *
from {{ model }}
where {{ adapter.quote(stands_on) }} < {{ mv.mv_test_instant(node) }} - interval {{ interval }} - interval {{ grace }}
  or {{ adapter.quote(stands_on) }} is not null and try_cast({{ adapter.quote(stands_on) }} as timestamp) is null
  {%- if not future %}
  or {{ adapter.quote(stands_on) }} > {{ mv.mv_test_instant(node) }}
  {%- endif %}
  {%- endif -%}
{% endtest %}
