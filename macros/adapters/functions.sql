{#- SQL functions are part of Spark since 4.0: CREATE FUNCTION f(a INT) RETURNS INT RETURN a + 1 -#}
{% macro spark_mv__scalar_function_create_replace_signature_sql(target_relation) -%}
  CREATE OR REPLACE FUNCTION {{ target_relation.render() }} ({{ formatted_scalar_function_args_sql() }})
  RETURNS {{ model.returns.data_type }}
  {{ scalar_function_volatility_sql() }}
{%- endmacro %}


{% macro spark_mv__scalar_function_body_sql() -%}
  RETURN
  {{ model.compiled_code }}
{%- endmacro %}


{#- Spark knows DETERMINISTIC and its opposite; within a query a stable function counts as deterministic -#}
{% macro spark_mv__scalar_function_volatility_sql() -%}
  {%- set volatility = model.config.get('volatility') -%}
  {%- if volatility == 'deterministic' -%}
    DETERMINISTIC
  {%- elif volatility == 'non-deterministic' -%}
    NOT DETERMINISTIC
  {%- elif volatility is not none -%}
    {%- do unsupported_volatility_warning(volatility) -%}
  {%- endif -%}
{%- endmacro %}


{% macro spark_mv__formatted_scalar_function_args_sql() -%}
  {%- set args = [] -%}
  {%- for arg in model.arguments -%}
    {%- set default = ' DEFAULT ' ~ arg.default_value if arg.get('default_value') is not none else '' -%}
    {%- do args.append(arg.name ~ ' ' ~ arg.data_type ~ default) -%}
  {%- endfor -%}
  {{ args | join(', ') }}
{%- endmacro %}
