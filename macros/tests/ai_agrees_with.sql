{#- Fails when the share of labelled rows whose `column` has the label is below `at_least`, or when no labelled row is in the model (`rows`: how
    many there have to be). `labels` is a relation with the column `key` (of the model's unique_key) and `label`. In YAML:

    models:
      - name: tickets
        columns:
          - name: sentiment
            data_tests:
              - ai_agrees_with: {arguments: {labels: ref('sentiment_labels'), key: ticket_id, label: sentiment, at_least: 0.9}} -#}
{% test ai_agrees_with(model, labels=none, at_least=none, key=none, label='label', column=none, column_name=none, rows=1) %}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- if execute -%}
  {%- set answered = column or column_name -%}
  {%- set node = mv.mv_tested(context['model']) -%}
  {%- set keys = mv.mv_listed(key, node.get('config', {}).get('unique_key')) -%}
  {%- if not (labels and answered and keys) -%}
    {{ return(mv.mv_test_refused("ai_agrees_with: name the `labels`, the `column`, and the `key` that model and labels share")) }}
  {%- endif -%}
  {%- set wrong = mv.mv_test_share("ai_agrees_with", "at_least", at_least) | trim or mv.mv_test_count("ai_agrees_with", "rows", rows) | trim -%}
  {%- if wrong -%}{{ return(mv.mv_test_refused(wrong)) }}{%- endif -%}
select count(*) as labelled, count_if(m.{{ adapter.quote(answered) }} <=> l.{{ adapter.quote(label) }}) as agreed
from {{ model }} m
join {{ labels }} l on {% for name in keys %}m.{{ adapter.quote(name) }} = l.{{ adapter.quote(name) }}{{ ' and ' if not loop.last }}{% endfor %}
having count(*) < {{ rows }} or count_if(m.{{ adapter.quote(answered) }} <=> l.{{ adapter.quote(label) }}) < {{ at_least }} * count(*)
  {%- endif -%}
{% endtest %}
