select customer_id, lifetime_value
from {{ ref('customers') }}
where lifetime_value <= 0
