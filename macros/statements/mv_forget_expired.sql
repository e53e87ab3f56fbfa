{#- Rows whose window has passed need not be remembered any longer. -#}
{% macro default__mv_forget_expired(args) -%}
delete from {{ args['relation'] }} where __mv_valid_to <= {{ args['as_of'] }}
{%- endmacro %}
