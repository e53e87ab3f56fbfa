{#- Fails with the values of `columns` that are others than `back` versions of the table ago: one row for each key and column. For columns whose
    values are kept (draws, frozen ones, a paid answer). Rows that came or went are no fault. In YAML:

    models:
      - name: tickets
        data_tests:
          - values_unchanged: {arguments: {columns: [split, first_seen_at]}}
          - values_unchanged: {arguments: {columns: split, back: 10, unique_key: ticket_id}} -#}
{% test values_unchanged(model, columns=none, column_name=none, back=1, unique_key=none) %}
  {%- set mv = context.get('dbt_spark_mv', dbt) -%}
  {%- if execute -%}
    {%- set node = mv.mv_tested(context['model']) -%}
    {%- set relation = mv.mv_tested_relation(node) -%}
    {%- set keys = mv.mv_listed(unique_key, node.get('config', {}).get('unique_key')) -%}
    {%- set wanted = mv.mv_listed(columns, column_name) -%}
    {%- if not keys or not wanted -%}
      {{ return(mv.mv_test_refused("values_unchanged: " ~ node.get('name', 'this') ~ ": name `columns`, and `unique_key` where the model's config has none")) }}
    {%- endif -%}
    {%- set wrong = mv.mv_test_count("values_unchanged", "back", back) | trim -%}
    {%- if wrong -%}{{ return(mv.mv_test_refused(wrong)) }}{%- endif -%}
    {%- if node.get('config', {}).get('materialized') == 'ephemeral' -%}
      {{ return(mv.mv_test_refused("values_unchanged: " ~ node.name ~ " is ephemeral, which keeps no versions to compare with; test the table underneath")) }}
    {%- endif -%}
    {%- if not mv.mv_tested_is_there(node) %}
select * from {{ model }}
    {%- else -%}
    {%- if load_relation(relation).is_view -%}
      {{ return(mv.mv_test_refused("values_unchanged: " ~ relation ~ " is a view, which keeps no versions to compare with; test the table underneath")) }}
    {%- endif -%}
    {%- set wrong = mv.mv_test_columns("values_unchanged", relation, keys + wanted) | trim -%}
    {%- if wrong -%}{{ return(mv.mv_test_refused(wrong)) }}{%- endif -%}
    {%- set before = mv.mv_version_before(relation, back | int) -%}
    {%- set old = relation ~ ' version as of ' ~ before -%}
    {%- set known = [] -%}
    {%- if before is not none -%}
      {%- for name in get_columns_in_query('select * from ' ~ old) -%}{%- do known.append(name | lower) -%}{%- endfor -%}
    {%- endif -%}
    {%- set shared = [] -%}
    {%- for name in wanted if name | lower in known -%}{%- do shared.append(name) -%}{%- endfor -%}
    {%- for key in keys if before is not none and key | lower not in known -%}{%- do shared.clear() -%}{%- endfor -%}
    {%- for name in shared %}
select
    {%- for key in keys %}
    n.{{ adapter.quote(key) }},
    {%- endfor %}
    {{ dbt.string_literal(name) }} as column_name,
    to_json(struct(b.{{ adapter.quote(name) }} as value)) as before,
    to_json(struct(n.{{ adapter.quote(name) }} as value)) as now
from {{ old }} b
join {{ model }} n on {% for key in keys %}b.{{ adapter.quote(key) }} = n.{{ adapter.quote(key) }}{{ ' and ' if not loop.last }}{% endfor %}
where not (to_json(struct(b.{{ adapter.quote(name) }} as value)) <=> to_json(struct(n.{{ adapter.quote(name) }} as value)))
      {%- if not loop.last %}
union all{% endif %}
    {%- else %}
select 1 as none_to_compare where false
    {%- endfor -%}
    {%- endif -%}
  {%- endif -%}
{% endtest %}
