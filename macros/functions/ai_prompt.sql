{#- The text of a prompt file of the project (`prompts/triage.md`) as SQL: a string literal, or, with arguments, a concat in which each `{name}`
    of the text is the SQL given for it. `examples`: rows of a seed, where the text says `{examples}`, else behind it.

    ai_gen({{ ai_prompt('triage', body='body') }})
    ai_filter(body, {{ ai_prompt('wants_refund', examples={'seed': 'refund_cases', 'input': 'body', 'output': 'is_one'}) }}) -#}
{% macro ai_prompt(name, examples=none, package=none) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- if name is not string -%}
    {%- do exceptions.raise_compiler_error(
      "ai_prompt(" ~ name ~ "): the first argument names a file in the folder of prompts, e.g. ai_prompt('triage') for prompts/triage.md"
      ~ "; if it comes from a variable, that has no name in it") -%}
  {%- endif -%}
  {%- set found = adapter.mv_ai_prompt(name, kwargs, examples, mv.mv_package_of_prompts(package), var('ai_prompt_path', 'prompts')) -%}
  {%- do mv.mv_note_prompts(found['files'], examples) -%}
  {{- found['sql'] -}}
{%- endmacro %}

{#- Rows of a seed as examples, by themselves: a string literal. In the order of the seed's file; `output` is a column, or a list of
    columns, which make a JSON object. -#}
{% macro ai_examples(seed, input, output, delimiter=',', package=none) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- set examples = {'seed': seed, 'input': input, 'output': output, 'delimiter': delimiter} -%}
  {%- set found = adapter.mv_ai_prompt(none, {}, examples, mv.mv_package_of_prompts(package), '') -%}
  {%- do mv.mv_note_prompts(found['files'], examples) -%}
  {{- found['sql'] -}}
{%- endmacro %}

{#- The project whose files are meant: that of the model, or the one that is named. -#}
{% macro mv_package_of_prompts(package) -%}
  {%- set node = model if model is defined and model is mapping else {} -%}
  {{ return(package or (node['package_name'] if node.get('resource_type') not in [none, 'macro', 'operation'] else project_name)) }}
{%- endmacro %}

{#- What dbt is to know of a model's prompt files: `state:modified` sees that they changed by the model's config, and the seed is one that it
    depends on. dbt compares what the config says as it is written or as it is rendered, by a flag of the project. -#}
{% macro mv_note_prompts(files, examples) -%}
  {%- if examples -%}{%- do ref(examples['seed']) -%}{%- endif -%}
  {%- if not execute and config.context_config -%}
    {%- do config(meta=files) -%}
    {%- do config.context_config.add_unrendered_config_call(files) -%}
  {%- endif -%}
{%- endmacro %}
