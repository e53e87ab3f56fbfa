-- Queries of shapes that incremental maintenance once got wrong, and their kin. The history below runs once; a model is made
-- just before the step under which it stands, and run again after it.
--   == name @ instant          a step: its statements follow, up to the first query
--   -- name | unique_key       a query; `| always` where it is no slow test

== sources @ 2026-01-10 00:30:00
create table {schema}.t (id int, g string, k int, x int, ts timestamp, tags array<string>) using delta tblproperties ('delta.enableChangeDataFeed' = 'true');
create table {schema}.o (oid int, cust int, x int) using delta tblproperties ('delta.enableChangeDataFeed' = 'true');
create table {schema}.c (cust int, region string, x int, st struct<a: int, b: string>) using delta tblproperties ('delta.enableChangeDataFeed' = 'true');
create table {schema}.r (region string, name string, id int) using delta;
create table {schema}.e (id int, z int) using delta tblproperties ('delta.enableChangeDataFeed' = 'true');
insert into {schema}.t values (1, 'a', 1, 10, timestamp'2026-01-09 22:00:00', array('p', 'q')), (2, 'a', 2, 20, timestamp'2026-01-09 22:03:00', array('q')), (3, 'b', 1, 30, timestamp'2026-01-09 23:00:00', array()), (4, null, 2, 40, timestamp'2026-01-12 00:00:00', null), (5, 'c', 3, -5, timestamp'2026-01-09 22:20:00', array('r')), (6, 'a', 3, 20, timestamp'2026-01-09 22:40:00', array('p'));
insert into {schema}.o values (1, 1, 1), (2, 1, 7), (3, 2, 2), (4, 3, 3), (5, null, 3), (6, 2, 8), (7, 9, 1);
insert into {schema}.c values (1, 'north', 2, named_struct('a', 1, 'b', 'x')), (2, 'south', 1, named_struct('a', 2, 'b', 'y')), (3, 'west', null, null), (4, null, 1, named_struct('a', 1, 'b', 'z'));
insert into {schema}.r values ('north', 'N', 1), ('south', 'S', 2), ('east', 'E', 3), ('void', 'V', 7);
insert into {schema}.e values (1, 1), (2, 2), (3, 3), (4, null), (5, 9);

== a customer goes, another one changes its region @ 2026-01-10 00:30:00
delete from {schema}.c where cust = 2;
update {schema}.c set region = 'east' where cust = 3;
-- left join chain, the last side missing | oid | always
select o.oid from {o} left join {c} on c.cust = o.cust left join {r} on r.region = c.region where r.region is null
-- left join chain, the last side shown | oid
select o.oid, coalesce(r.name, '-') as name from {o} left join {c} on c.cust = o.cust left join {r} on r.region = c.region
-- left join chain, grouped by the last side | name
select coalesce(r.name, '-') as name, count(*) as n, sum(o.x) as s from {o} left join {c} on c.cust = o.cust left join {r} on r.region = c.region group by r.name
-- left join chain, distinct of the last side | name
select distinct coalesce(r.name, '-') as name from {o} left join {c} on c.cust = o.cust left join {r} on r.region = c.region
-- left join chain, a window over the last side | oid
select o.oid, r.name, sum(o.x) over (partition by r.name) as s from {o} left join {c} on c.cust = o.cust left join {r} on r.region = c.region
-- left join chain, the last side in the key | oid, name
select o.oid, coalesce(r.name, '?') as name from {o} left join {c} on c.cust = o.cust left join {r} on r.region = c.region where o.x < 9
-- on over both sides | oid
select o.oid, r.name from {o} left join {c} on c.cust = o.cust left join {r} on r.id = coalesce(c.x, o.x)
-- on over both sides, missing | oid | always
select o.oid from {o} left join {c} on c.cust = o.cust left join {r} on r.id = coalesce(c.x, o.x) where r.id is null
-- null safe on | oid
select o.oid, r.name from {o} left join {c} on c.cust = o.cust left join (select * from {r} union all select cast(null as string), 'none', 0) r on r.region <=> c.region
-- chain in derived tables | oid
select q.oid, q.name from (select j.oid, r.name from (select o.oid, c.region from {o} left join {c} on c.cust = o.cust) j left join {r} on r.region = j.region) q where q.name is null
-- chain in ctes, anti join at the end | oid
with j as (select o.oid, c.region from {o} left join {c} on c.cust = o.cust) select j.oid from j left anti join {r} on r.region = j.region
-- tables in short form | oid, x | always
table {o} union all select cust + 100, cust, coalesce(x, -1) from (table {c}) c where c.cust in (1, 3)
-- semi join at the end | oid
select o.oid from {o} left join {c} on c.cust = o.cust left semi join {r} on r.region = coalesce(c.region, 'east')
-- not exists on an optional column | oid
select o.oid from {o} left join {c} on c.cust = o.cust where not exists (select 1 from {r} where r.region = c.region)
-- in on an optional column | oid
select o.oid from {o} left join {c} on c.cust = o.cust where coalesce(c.region, 'east') in (select region from {r})
-- right join chain | oid
select o.oid, c.cust, r.name from {r} right join {c} on r.region = c.region right join {o} on o.cust = c.cust
-- full join | kk
select coalesce(o.cust, c.cust) as kk, max(c.region) as region, count(o.oid) as n from {o} full join {c} on c.cust = o.cust group by coalesce(o.cust, c.cust) having coalesce(o.cust, c.cust) is not null
-- groups by an optional column, joined to its keys | region | always
with g as (select c.region, count(*) as n, sum(o.x) as s from {o} left join {c} on c.cust = o.cust group by c.region) select r.region, g.n, coalesce(g.s, 0) as s from {r} left join g on g.region = r.region
-- groups side by side, their key coalesced | region | always
with a as (select c.region, count(*) as n from {o} left join {c} on c.cust = o.cust group by 1), b as (select c.region, max(c.x) as m from {c} group by 1), j as (select coalesce(a.region, b.region) as region, a.n, b.m from a left join b on b.region = a.region) select r.region, j.n, j.m from {r} left join j on j.region = r.region
-- subqueries of the select list, tied to their rows | oid | always
select o.oid, (select max(c.region) from {c} where c.cust = o.cust) as region, exists (select 1 from {c} where c.cust = o.cust and c.x > 1) as big from {o}
-- groups that a range joins | id, x | always
select r.id, g.x, g.m from {r} join (select x, min(cust) as m from {c} where x is not null group by x) g on r.id >= g.m
-- inner join after an optional side | oid
select o.oid, r.name from {o} left join {c} on c.cust = o.cust join {r} on r.region = coalesce(c.region, 'void')
-- optional side in a filter that needs it | oid
select o.oid, c.region from {o} left join {c} on c.cust = o.cust where c.region in ('north', 'east', 'south')
-- lateral view over an optional side | oid, tag | always
select o.oid, v.tag from {o} left join {c} on c.cust = o.cust lateral view outer explode(array(coalesce(c.region, 'none'), 'z')) v as tag
-- an outer generator over an optional side | oid, tag | always
select o.oid, coalesce(v.tag, '-') as tag from {o} left join {c} on c.cust = o.cust left join lateral explode(filter(array(c.region, upper(c.region)), e -> e <> 'west')) as v(tag) on true
-- a generator behind a comma | id, tag | always
select t.id, v.tag, e.z from {t} left join {e} on e.id = t.id, lateral explode(t.tags) as v(tag), lateral posexplode(array(v.tag)) w where w.pos < 1
-- struct field of an optional side | oid
select o.oid, c.st.b as b, coalesce(c.st.a, 0) as a from {o} left join {c} on c.cust = o.cust where coalesce(c.st.a, 0) <> 1
-- using, then an optional side | oid
select oid, r.name from {o} left join {c} using (cust) left join {r} using (region) where r.name is null

== dimensions come and go @ 2026-01-10 00:30:00
delete from {schema}.r where region = 'north';
insert into {schema}.r values ('west', 'W', 4), ('south', 'S', 3);
update {schema}.r set name = 'EE' where region = 'east';
-- aggregated left side, dimension missing | cust | always
with a as (select cust, count(*) as n from {o} where cust is not null group by cust) select a.cust, a.n, c.region from a left join {c} on c.cust = a.cust left join (select distinct region from {r}) d on d.region = c.region where d.region is null
-- dimension grouped | name
select d.name, sum(o.x) as s from {o} join {c} on c.cust = o.cust join (select region, min(name) as name from {r} group by region) d on d.region = c.region group by d.name
-- on a literal and a column | oid
select o.oid, count(r.id) as n from {o} left join {r} on r.id = o.x and r.name > 'B' group by o.oid
-- full of both | region
select coalesce(a.region, b.region) as region, a.n, b.m from (select region, count(*) as n from {c} where region is not null group by region) a full join (select region, count(*) as m from {r} group by region) b on a.region = b.region

== new rows in t, one changes, one goes @ 2026-01-10 00:30:00
insert into {schema}.t values (7, 'a', 2, 5, timestamp'2026-01-09 22:01:00', array('z', 'p')), (8, 'd', 2, 5, timestamp'2026-01-09 22:45:00', array('p')), (9, null, 1, 20, timestamp'2026-01-09 21:00:00', null);
update {schema}.t set x = x + 100, g = 'b' where id = 2;
delete from {schema}.t where id = 5;
-- hash of all columns of a group | k0
select *, sha2(to_json(struct(*)), 256) as k0 from (select g, count(*) as c from {t} group by g) x
-- hash star | h, c
select hash(*) as h, x.* from (select g, count(*) as c, sum(x) as s from {t} group by g) x
-- xxhash64 star | h, n
select xxhash64(*) as h, g, n from (select coalesce(g, '?') as g, k, count(*) as n from {t} group by g, k) q
-- struct of a table | id | always
select x.id, to_json(struct(x.*)) as j from (select id, g, row_number() over (partition by g order by id) as rn from {t}) x where x.rn < 3
-- key of all columns over a join | k0
select q.*, md5(to_json(struct(q.*))) as k0 from (select t.id, t.g, e.z from {t} left join {e} on e.id = t.k) q
-- key of all columns over a window | k0
select *, sha1(to_json(struct(*))) as k0 from (select id, g, sum(x) over (partition by g) as s from {t}) w
-- star filter | g | always
select g, c from (select coalesce(g, '?') as g, count(*) as c, max(id) as m from {t} group by g) q where hash(*) % 2 = 0 or c >= 1
-- key of all columns, one table | h
select id, g, x, xxhash64(*) as h from {t}
-- count of all columns | g
select coalesce(g, '?') as g, count(*) as n, count(struct(t.*)) as m from {t} group by g
-- natural join | id
select id, x, z from {t} natural join {e}
-- using, key first | id
select * from (select id, k from {t}) a join (select z as k, id as eid from {e}) b using (k)
-- pivot | g
select * from (select coalesce(g, '?') as g, k, x from {t}) pivot (sum(x) as s for k in (1, 2, 3))
-- group by all with positions | g, k
select coalesce(g, '?') as g, k, sum(x) as s from {t} group by all order by 2
-- group by positions | g
select coalesce(g, '?') as g, sum(x) as s from {t} group by 1 order by 2 desc
-- star except | id
select * except (g, tags) from {t} where x > 5
-- distinct star | id, kk
select distinct * from (select id % 3 as id, k as kk from {t}) q
-- star of a derived table without an alias | g | always
select * from (select coalesce(g, '?') as g, count(*) as n, sum(x) as s, avg(x) as a from {t} group by g)
-- star of a window without an alias | id
select * from (select id, g, row_number() over (partition by g order by id) as rn from {t}) where rn = 1
-- coalesced group key | g
select coalesce(g, 'none') as g, avg(x) as a from {t} group by g
-- injective group key | gk
select concat('g:', coalesce(g, '?'), '/', k) as gk, avg(x) as a, max(x) as m from {t} group by g, k
-- group key in a struct | gk, n
select struct(g, k) as s, to_json(struct(g, k)) as gk, count(*) as n, avg(x) as a from {t} group by g, k
-- session windows | g, s | always
select coalesce(g, '?') as g, session_window(ts, '10 minutes').start as s, count(*) as n, sum(x) as sx from {t} group by g, session_window(ts, '10 minutes')
-- session windows as a struct | w
select to_json(session_window) as w, count(*) as n from {t} group by session_window(ts, '10 minutes')
-- session windows shown whole | w
select cast(session_window(ts, '10 minutes') as string) as w, count(*) as n from {t} group by session_window(ts, '10 minutes')
-- session windows below | g, s
select g, s, n from (select coalesce(g, '?') as g, session_window.start as s, session_window.end as e, count(*) as n from {t} group by coalesce(g, '?'), session_window(ts, '10 minutes')) where n > 0
-- sliding windows | s
select window.start as s, count(*) as n from {t} group by window(ts, '20 minutes', '10 minutes')
-- tumbling windows | g, s
select coalesce(g, '?') as g, window(ts, '10 minutes').start as s, sum(x) as sx, count(*) as n from {t} group by g, window(ts, '10 minutes')
-- window time | s
select window_time(window) as s, n from (select window, count(*) as n from {t} group by window(ts, '10 minutes'))
-- gaps and islands | g, island | always
with l as (select coalesce(g, '?') as g, ts, x, lag(ts) over (partition by coalesce(g, '?') order by ts, id) as p from {t}), i as (select *, sum(case when p is null or ts > p + interval 10 minutes then 1 else 0 end) over (partition by g order by ts, x) as island from l) select g, island, min(ts) as start_ts, count(*) as n from i group by g, island
-- lag over groups | g, k
select g, k, s, lag(s) over (partition by g order by k) as before from (select coalesce(g, '?') as g, k, sum(x) as s from {t} group by g, k)
-- exploded groups | tag
select tag, count(*) as n, max(x) as m from {t} lateral view explode(tags) v as tag group by tag
-- exploded in the select list | id, tag
select id, explode(tags) as tag from (select id, array_distinct(tags) as tags, max(x) over (partition by k) as m from {t})
-- comma before a left join | id, oid
select t.id, o.oid, c.region from {t}, {o} left join {c} on c.cust = o.cust where t.k = o.x
-- comma before a right join | id, cust
select coalesce(t.id, 0) as id, c.cust, count(*) as n from (select id, k from {t} where k = 1) t, {o} right join {c} on c.cust = o.cust group by 1, 2
-- union of arms with stars and using | k, id, z | always
select * from (select id, k from {t}) a join (select k, max(x) as z from {t} group by k) b using (k) union all select z as k, id + 100 as id, z from {e} where z is not null

== e changes, no bound is crossed @ 2026-01-10 05:30:00
insert into {schema}.e values (6, 4), (7, 6);
delete from {schema}.e where id = 1;
update {schema}.e set z = 5 where id = 2;
-- anti join with a clock | id
with r as (select id from {t} where ts <= now()) select e.id, e.z from {e} left anti join r on r.id = e.id
-- anti join with a clock, other clock word | id
with r as (select id from {t} where ts < current_timestamp()) select e.id from {e} left anti join r on r.id = e.z
-- left join with a clock, missing | id | always
select e.id from {e} left join (select id from {t} where ts <= current_timestamp()) r on r.id = e.id where r.id is null
-- not in with a clock | id
select e.id from {e} where e.id not in (select id from {t} where id is not null and ts <= current_timestamp())
-- not exists with a clock | id
with r as (select id from {t} where ts <= current_timestamp()) select e.id from {e} where not exists (select 1 from r where r.id = e.id)
-- aggregated side with a clock | id
with r as (select k, count(*) as n from {t} where ts <= current_timestamp() group by k) select e.id, coalesce(r.n, 0) as n from {e} left join r on r.k = e.id where coalesce(r.n, 0) < 3
-- correlated subqueries among the columns of a union | id, kind | always
with b as (select e.*, (select max(x) from {t} t where t.k = e.id) as m from {e} e) select id, 0 as kind, m from b union all select id, 1, z from b
-- a correlated subquery in one branch of a union | id, kind
select id, 0 as kind, (select max(x) from {t} t where t.k = e.id) as m from {e} e union select id, 1, x from {t}
-- exists among the columns of a union | id, kind | always
with b as (select e.id, exists (select 1 from {t} t where t.k = e.id) as seen from {e} e) select *, 0 as kind from b union all select *, 1 from b where seen
-- unions of clocks | id
with r as (select id from {t} where ts <= current_timestamp() union all select 6) select e.id from {e} left anti join r on r.id = e.id

== the clock lets a row of t in, e changes @ 2026-01-12 00:30:00
insert into {schema}.e values (8, 6);
delete from {schema}.e where id = 3;
-- anti join, the clock moves | id | always
with r as (select id from {t} where ts <= now()) select e.id, e.z from {e} left anti join r on r.id = e.id
-- left join, the clock moves | id
select e.id, r.x from {e} left join (select id, x from {t} where ts <= current_timestamp()) r on r.id = e.id where coalesce(r.x, 0) < 50
-- groups over an optional side, the clock moves | m
select coalesce(r.k, 0) as m, count(*) as n, avg(e.z) as a from {e} left join (select id, k from {t} where ts > current_timestamp() - interval 30 hours) r on r.id = e.id group by 1
-- except, the clock moves | id
select id from {e} except select id from {t} where ts <= current_timestamp()
