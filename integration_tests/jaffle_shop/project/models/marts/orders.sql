{% set methods = ['credit_card', 'coupon', 'bank_transfer', 'gift_card'] %}

with payments as (
    select
        order_id,
        {% for method in methods -%}
        sum(case when payment_method = '{{ method }}' then amount else 0 end) as {{ method }}_amount,
        {% endfor -%}
        sum(amount) as amount
    from {{ ref('stg_payments') }}
    group by order_id
)

select
    orders.order_id,
    orders.customer_id,
    orders.order_date,
    orders.status,
    {% for method in methods -%}
    payments.{{ method }}_amount,
    {% endfor -%}
    payments.amount
from {{ ref('stg_orders') }} as orders
left join payments on payments.order_id = orders.order_id
