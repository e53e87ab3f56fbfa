{{ config(on_source_delete='keep') }}
-- rows that are still to come wait in a state table
select id, at, rand() as draw from golden.events
where at > current_timestamp() - interval 3 days and at <= current_timestamp()
