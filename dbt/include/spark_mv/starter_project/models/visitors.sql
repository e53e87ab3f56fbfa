{{ config(materialized='nondeterministic_mv', unique_key='visitor_id', freeze=['first_seen_at']) }}

with visits as (

    select visitor_id, count(*) as visits, sum(pages) as pages, max(visited_on) as last_visit
    from {{ ref('visits') }}
    -- rows leave by themselves with: where visited_on > current_date() - interval 30 days
    group by visitor_id

)

select
    visitor_id,
    visits,
    pages,
    last_visit,
    case when rand() < 0.5 then 'a' else 'b' end as bucket,  -- drawn once per visitor
    current_timestamp() as first_seen_at                     -- kept, because of freeze
from visits
