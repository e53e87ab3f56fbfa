{#- Fails with the rows in which a nondeterministic_mv differs from a complete recompute, at the source versions, the instant
    and the kept values of its last run. `sample`: only this share of the keys, found by their hash. In YAML:

    models:
      - name: tickets
        data_tests:
          - matches_recompute                    # with `dbt deps`: dbt_spark_mv.matches_recompute
          - matches_recompute: {arguments: {sample: 0.05}} -#}
{% test matches_recompute(model, sample=none) %}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- if execute -%}
    {%- set node = mv.mv_tested(context['model']) -%}
    {%- if adapter.type() != 'spark_mv' or node.get('config', {}).get('materialized') != 'nondeterministic_mv' -%}
      {{ return(mv.mv_test_refused("matches_recompute: " ~ node.get('name', 'this') ~ " is no nondeterministic_mv on the adapter spark_mv")) }}
    {%- endif -%}
    {%- if not mv.mv_tested_is_there(node) %}
select * from {{ model }}
    {%- else -%}
    {%- set args = adapter.mv_recompute_args(mv.mv_invocation_of(node), sample) -%}
    {%- set wrong = args.get('refused') -%}
    {%- if wrong -%}{{ return(mv.mv_test_refused(wrong)) }}{%- endif -%}
    {%- set keys = args['columns'] | selectattr('role', 'equalto', 'key') | list %}
select * from (
  select
    case __mv_op when 'I' then 'missing in the table' when 'D' then 'too many in the table' else 'different' end as difference
    {%- for column in args['columns'] %},
    {{ adapter.quote(column['name']) }}
    {%- endfor %}
  from (
{{ mv.mv_changed_rows(args) }}
  )
  where __mv_op <> '='
  union all
  select
    'repeated in the table' as difference
    {%- for column in args['columns'] %},
    {{ adapter.quote(column['name']) }}
    {%- endfor %}
  from (
    select *, row_number() over (partition by {% for key in keys %}{{ adapter.quote(key['name']) }}{{ ', ' if not loop.last }}{% endfor %} order by {{ adapter.quote(keys[0]['name']) }}) as __mv_copy
    from {{ args['target'] }}
  )
  where __mv_copy > 1
)
    {%- if config.get('where') %}
where {{ config.get('where') }}
    {%- endif %}
    {%- endif -%}
  {%- endif -%}
{% endtest %}
