{{ config(materialized='nondeterministic_mv', unique_key='customer_id', freeze=['joined_at']) }}

select
    customer_id,
    case when rand() < 0.5 then 'letter' else 'postcard' end as mailing, -- drawn once per customer
    current_timestamp() as joined_at
from {{ ref('customers') }}
where number_of_orders > 0
