{#- Between which values the affected anchors lie: as literals, they keep the statements that follow from files that hold
    none of them. -#}
{% macro default__mv_affected_range(args) -%}
select
  {%- for anchor in args['anchors'] %}
  min({{ anchor['affected'] }}) as {{ adapter.quote('low ' ~ anchor['column']) }},
  max({{ anchor['affected'] }}) as {{ adapter.quote('high ' ~ anchor['column']) }},
  count_if({{ anchor['affected'] }} is null) as {{ adapter.quote('nulls ' ~ anchor['column']) }}{{ ',' if not loop.last }}
  {%- endfor %}
from {{ args['affected'] }}
{%- endmacro %}
