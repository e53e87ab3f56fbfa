{#- The model that a generic test stands on, and its relation: the test's own `model` may be a query that filters it. -#}
{% macro mv_tested(test) -%}
  {%- set name = test.get('attached_node') or test['depends_on']['nodes'][0] -%}
  {{ return(graph.nodes.get(name) or graph.sources.get(name, {})) }}
{%- endmacro %}

{% macro mv_tested_relation(node) -%}
  {{ return(api.Relation.create(database=node.database, schema=node.schema, identifier=node.get('alias') or node.get('identifier'), type='table')) }}
{%- endmacro %}

{#- Whether the tested table is there: a test may be compiled before the first run, and then looks at nothing. -#}
{% macro mv_tested_is_there(node) -%}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {{ return(load_relation(mv.mv_tested_relation(node)) is not none) }}
{%- endmacro %}

{#- The version of a table that is `back` versions ago; none before its first. -#}
{% macro mv_version_before(relation, back) -%}
  {%- set told = [] -%}
  {%- for row in run_query('describe extended ' ~ relation).rows if row[0] == 'Provider' -%}{%- do told.append(row[1] | lower) -%}{%- endfor -%}
  {%- if 'iceberg' in told -%}
    {%- set rows = run_query('select snapshot_id from ' ~ relation ~ '.history where is_current_ancestor order by made_current_at desc limit ' ~ (back + 1)).rows -%}
    {{ return(rows[back]['snapshot_id'] | int if rows | length > back else none) }}
  {%- endif -%}
  {%- set before = (run_query('describe history ' ~ relation ~ ' limit 1').rows[0]['version'] | int) - back -%}
  {{ return(before if before >= 0 else none) }}
{%- endmacro %}

{% macro mv_listed(given, otherwise=none) -%}
  {%- set found = otherwise if given is none else given -%}
  {{ return([found] if found is string else (found or [])) }}
{%- endmacro %}

{#- A test that cannot be asked as it is written: a query that fails where the test runs, and says why. An error while it is compiled would stop
    `dbt compile` and `dbt docs generate` for everybody. Only a filter is sure to be evaluated: dbt counts rows. -#}
{% macro mv_test_refused(message) -%}
select 1 as refused where raise_error({{ dbt.string_literal(dbt.escape_single_quotes(message)) }}) is null
{%- endmacro %}

{#- What is wrong with the names of columns of `relation`, if anything: a test of what is no column would find nothing wrong with it, ever. -#}
{% macro mv_test_columns(test, relation, names) -%}
  {%- set there = get_columns_in_query('select * from ' ~ relation) -%}
  {%- for name in names if name | lower not in there | map('lower') | list -%}
    {{ return(test ~ ": " ~ relation ~ " has no column " ~ name ~ "; its columns are " ~ there | join(', ')) }}
  {%- endfor -%}
{%- endmacro %}

{#- What is wrong with an argument that is no share, such as 5 where 5 % are meant: what is measured is never above 1. -#}
{% macro mv_test_share(test, word, given) -%}
  {%- set share = given | float(-1) -%}
  {%- if given is boolean or not 0 <= share <= 1 -%}
    {{ return(test ~ ": " ~ word ~ " is a share from 0 to 1 (0.05 is 5 %), and not " ~ given) }}
  {%- endif -%}
{%- endmacro %}

{#- What is wrong with an argument that is no count from 1 on. -#}
{% macro mv_test_count(test, word, given) -%}
  {%- if given is boolean or given | int(0) < 1 or given | int(0) != given | float(-1) -%}
    {{ return(test ~ ": " ~ word ~ " is a whole number from 1 on, and not " ~ given) }}
  {%- endif -%}
{%- endmacro %}

{#- What is wrong with an argument that is no length of time. -#}
{% macro mv_test_interval(test, word, given) -%}
  {%- if given is not string or not given | trim -%}
    {{ return(test ~ ": " ~ word ~ " is a length of time such as 30 days, and not " ~ given) }}
  {%- endif -%}
{%- endmacro %}

{#- The instant that a test compares with: `--vars '{as_of: …}'`, else the `as_of` of the model, else the invocation's start. -#}
{% macro mv_test_instant(node) -%}
  {%- set said = context.get('dbt_spark_mv', dbt).mv_as_of() or node.get('config', {}).get('as_of') -%}
  {%- if said -%}timestamp'{{ said }}'{%- else -%}timestamp'{{ run_started_at.strftime('%Y-%m-%d %H:%M:%S') }} UTC'{%- endif -%}
{%- endmacro %}
