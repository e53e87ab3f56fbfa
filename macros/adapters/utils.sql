{#- The number of borders of `datepart` between two moments, as in every other dbt adapter. dbt-spark's goes through
    elapsed time and text, and raises on NULL. -#}
{% macro spark_mv__datediff(first_date, second_date, datepart) -%}
  {%- set part = datepart | lower -%}
  {%- set a = 'cast(' ~ first_date ~ ' as timestamp)' -%}
  {%- set b = 'cast(' ~ second_date ~ ' as timestamp)' -%}
  {%- set seconds = {'minute': 60, 'hour': 3600} -%}
  {%- if part == 'day' -%}
    datediff(cast({{ b }} as date), cast({{ a }} as date))
  {%- elif part == 'week' -%}
    {#- weeks begin on Sunday: 1970-01-04 was one -#}
    cast(floor((datediff(cast({{ b }} as date), date'1970-01-04')) / 7) - floor((datediff(cast({{ a }} as date), date'1970-01-04')) / 7) as int)
  {%- elif part == 'month' -%}
    ((year({{ b }}) - year({{ a }})) * 12 + month({{ b }}) - month({{ a }}))
  {%- elif part == 'quarter' -%}
    ((year({{ b }}) - year({{ a }})) * 4 + quarter({{ b }}) - quarter({{ a }}))
  {%- elif part == 'year' -%}
    (year({{ b }}) - year({{ a }}))
  {%- elif part == 'second' -%}
    (unix_seconds({{ b }}) - unix_seconds({{ a }}))
  {%- elif part == 'millisecond' -%}
    (unix_millis({{ b }}) - unix_millis({{ a }}))
  {%- elif part == 'microsecond' -%}
    (unix_micros({{ b }}) - unix_micros({{ a }}))
  {%- elif part in seconds -%}
    cast((unix_seconds(date_trunc('{{ part }}', {{ b }})) - unix_seconds(date_trunc('{{ part }}', {{ a }}))) / {{ seconds[part] }} as bigint)
  {%- else -%}
    {{ exceptions.raise_compiler_error("datediff: unknown datepart '" ~ datepart ~ "'; Spark has year, quarter, month, week, day, hour, minute, second, millisecond, microsecond") }}
  {%- endif -%}
{%- endmacro %}


{#- `timestampadd` keeps fractions of a second and the hour across a change of clocks; dbt-spark's way loses both -#}
{% macro spark_mv__dateadd(datepart, interval, from_date_or_timestamp) -%}
  timestampadd({{ datepart | upper }}, cast({{ interval }} as int), cast({{ from_date_or_timestamp }} as timestamp))
{%- endmacro %}


{#- Spark has an ordered LISTAGG since 4.0; a limit cuts its result at a character that no text holds -#}
{% macro spark_mv__listagg(measure, delimiter_text, order_by_clause, limit_num) -%}
  {%- if order_by_clause and not adapter.spark_at_least(4) -%}
    {{ return(spark__listagg(measure, delimiter_text, order_by_clause, limit_num)) }}
  {%- endif -%}
  {%- if not order_by_clause -%}
    {%- set list = 'collect_list(' ~ measure ~ ')' -%}
    {{ return('array_join(' ~ ('slice(' ~ list ~ ', 1, ' ~ limit_num ~ ')' if limit_num else list) ~ ', ' ~ delimiter_text ~ ')') }}
  {%- elif not limit_num -%}
    {{ return('listagg(' ~ measure ~ ', ' ~ delimiter_text ~ ') within group (' ~ order_by_clause ~ ')') }}
  {%- else -%}
    {%- set joined = "listagg(" ~ measure ~ ", '\\u0001') within group (" ~ order_by_clause ~ ")" -%}
    {{ return("array_join(slice(split(" ~ joined ~ ", '\\u0001'), 1, " ~ limit_num ~ "), " ~ delimiter_text ~ ")") }}
  {%- endif -%}
{%- endmacro %}


{% macro spark_mv__split_part(string_text, delimiter_text, part_number) -%}
  split_part({{ string_text }}, {{ delimiter_text }}, {{ part_number }})
{%- endmacro %}


{#- a backslash in a text begins an escape in Spark: it has to be doubled before the quotes get theirs -#}
{% macro spark_mv__escape_single_quotes(expression) -%}
{{ expression | replace('\\', '\\\\') | replace("'", "\\'") }}
{%- endmacro %}
