with spent as (
    select
        customer_id,
        min(order_date) as first_order,
        max(order_date) as most_recent_order,
        count(*) as number_of_orders,
        sum(amount) as lifetime_value
    from {{ ref('orders') }}
    group by customer_id
)

select
    customers.customer_id,
    customers.first_name,
    customers.last_name,
    spent.first_order,
    spent.most_recent_order,
    coalesce(spent.number_of_orders, 0) as number_of_orders,
    spent.lifetime_value
from {{ ref('stg_customers') }} as customers
left join spent on spent.customer_id = customers.customer_id
