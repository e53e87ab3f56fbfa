select
    id as payment_id,
    order_id,
    payment_method,
    cast(amount as decimal(12, 2)) / 100 as amount -- from cents
from {{ ref('raw_payments') }}
