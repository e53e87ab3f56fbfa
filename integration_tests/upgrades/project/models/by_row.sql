{{ config(freeze=['first_seen_at']) }}
select id, upper(word) as word, rand() as draw, uuid() as token, current_timestamp() as first_seen_at
from golden.events where id > 0
