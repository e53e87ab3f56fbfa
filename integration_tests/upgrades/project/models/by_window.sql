select id, kind, row_number() over (partition by kind order by amount, id) as place, rand() as draw from golden.events
