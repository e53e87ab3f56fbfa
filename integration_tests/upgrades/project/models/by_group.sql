{{ config(unique_key='kind') }}
select kind, count(*) as n, sum(amount) as total, uuid() as token from golden.events group by kind
