{#- How good the answers of an AI call are: against labels, or against the answers of a stronger model; several variants on the same rows.
    Answers are kept in ai_results, so what a model has paid for already is not asked again, and the other way round.

    dbt run-operation ai_eval --args '{data: ticket_labels, key: id, label: kind, call: "ai_classify(body, array(\"complaint\", \"praise\"))"}'
    dbt run-operation ai_eval --args '{data: …, key: id, call: …, judge: large, variants: {small: {model: small}, large: {model: large}}}' -#}
{% macro ai_eval(data, key, call=none, label=none, judge=none, variants=none, into=none) -%}
  {%- set found = [] -%}
  {%- for node in graph.nodes.values() if node.resource_type in ('seed', 'model', 'snapshot') and data in (node.name, node.unique_id) -%}
    {%- do found.append(node.relation_name) -%}
  {%- endfor -%}
  {%- set asked = {'data': found[0] if found else data, 'key': key, 'call': call, 'label': label, 'judge': judge, 'variants': variants, 'into': into} -%}
  {%- do log(adapter.mv_ai_eval(asked, target.schema, invocation_id, project_name), info=true) -%}
{%- endmacro %}
