{#- Nothing to write, but the sources moved on: a commit without data carries the new bookkeeping, so that the next run
    finds nothing to do. An INSERT of no rows, because it takes a turn as every other commit does: ALTER TABLE takes none, and
    Delta makes no commit for a MERGE, UPDATE or DELETE that affects no row. -#}
{% macro default__mv_record_only(args) -%}
insert into {{ args['relation'] }}
select * from {{ args['relation'] }} where false
{%- endmacro %}
