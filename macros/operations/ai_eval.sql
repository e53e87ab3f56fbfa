{#- How good the answers of an AI call are: against labels, or against the answers of a stronger model; several variants on the same rows.
    Answers are kept in ai_results, so what a model has paid for already is not asked again, and the other way round.

    dbt run-operation ai_eval --args '{data: ticket_labels, key: id, label: kind, call: "ai_classify(body, array(\"complaint\", \"praise\"))"}'
    A `call` may hold Jinja: {{ ai_prompt('triage', body='body') }} compares prompts of the project.

    dbt run-operation ai_eval --args '{data: …, key: id, call: …, judge: large, variants: {small: {model: small}, large: {model: large}}}' -#}
{% macro ai_eval(data, key, call=none, label=none, judge=none, variants=none, into=none) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- do mv.mv_no_others('ai_eval', ['data', 'key', 'call', 'label', 'judge', 'variants', 'into'], kwargs) -%}
  {%- set ways = {} -%}
  {%- if variants is mapping -%}
    {%- for name, words in variants.items() -%}
      {%- do ways.update({name: dict(words, call=render(words['call'])) if words is mapping and words.get('call') else words}) -%}
    {%- endfor -%}
  {%- endif -%}
  {%- set asked = {'data': mv.mv_relation_of(data), 'key': key, 'call': render(call) if call else call, 'label': label, 'judge': judge,
    'variants': ways or variants, 'into': into} -%}
  {%- do log(adapter.mv_ai_eval(asked, target.schema, invocation_id, project_name), info=true) -%}
{%- endmacro %}

{#- The relation of a seed, model or snapshot of the project by its name, else what was given. -#}
{% macro mv_relation_of(data) -%}
  {%- set found = [] -%}
  {%- for node in graph.nodes.values() if node.resource_type in ('seed', 'model', 'snapshot') and data in (node.name, node.unique_id) -%}
    {%- do found.append(node.relation_name) -%}
  {%- endfor -%}
  {{ return(found[0] if found else data) }}
{%- endmacro %}
