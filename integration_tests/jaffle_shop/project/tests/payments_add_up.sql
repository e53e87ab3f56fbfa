-- what came in is what the orders say
select paid, booked
from (select sum(amount) as paid from {{ ref('stg_payments') }})
cross join (select sum(amount) as booked from {{ ref('orders') }})
where paid <> booked or booked is null
