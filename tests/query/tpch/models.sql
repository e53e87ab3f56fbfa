-- name | unique_key, and a model over the tables of TPC-H as a project has it.
-- Staging: one row of the model for one of the source.
-- stg_orders | order_id
select o_orderkey as order_id, o_custkey as customer_id, o_orderstatus as status, o_totalprice as total, o_orderdate as ordered_on, year(o_orderdate) as ordered_in from orders
-- stg_lines | order_id, line
select l_orderkey as order_id, l_linenumber as line, l_partkey as part_id, l_suppkey as supplier_id, l_quantity as quantity, l_extendedprice * (1 - l_discount) as net, l_shipdate as shipped_on from lineitem
-- stg_lines_whole | l_orderkey, l_linenumber
select *, l_extendedprice * (1 - l_discount) * (1 + l_tax) as charge, datediff(l_receiptdate, l_shipdate) as days_under_way from lineitem
-- stg_customers | customer_id
select c_custkey as customer_id, trim(c_name) as name, lower(c_mktsegment) as segment, c_acctbal as balance, substr(c_phone, 1, 2) as country from customer
-- stg_parts | p_partkey
select p_partkey, p_name, split(p_type, ' ')[2] as material, p_size, p_retailprice from part
-- stg_offers | part_id, supplier_id
select ps_partkey as part_id, ps_suppkey as supplier_id, ps_supplycost as cost, ps_availqty as available from partsupp
-- orders_with_texts | o_orderkey
select o_orderkey, upper(o_comment) as comment, length(o_comment) as letters, concat_ws('-', o_orderpriority, o_orderstatus, o_clerk) as tag from orders
-- lines_buckets | l_orderkey, l_linenumber
select l_orderkey, l_linenumber, case when l_quantity < 10 then 'few' when l_quantity < 30 then 'some' else 'many' end as bucket, md5(l_comment) as digest from lineitem
-- Filters.
-- open_orders | o_orderkey
select o_orderkey, o_custkey, o_totalprice from orders where o_orderstatus = 'O'
-- large_orders | o_orderkey
select o_orderkey, o_custkey, o_totalprice, o_orderdate from orders where o_totalprice > 250000
-- returned_lines | l_orderkey, l_linenumber
select l_orderkey, l_linenumber, l_partkey, l_extendedprice from lineitem where l_returnflag = 'R'
-- late_lines | l_orderkey, l_linenumber
select l_orderkey, l_linenumber, l_suppkey, datediff(l_receiptdate, l_commitdate) as days_late from lineitem where l_receiptdate > l_commitdate
-- discounted_lines | l_orderkey, l_linenumber
select l_orderkey, l_linenumber, l_discount, l_extendedprice * l_discount as given from lineitem where l_discount between 0.05 and 0.07 and l_quantity < 24
-- urgent_orders | o_orderkey
select o_orderkey, o_clerk, o_orderdate from orders where o_orderpriority in ('1-URGENT', '2-HIGH')
-- special_requests | o_orderkey
select o_orderkey, o_comment from orders where o_comment like '%special%requests%'
-- lines_by_air | l_orderkey, l_linenumber
select l_orderkey, l_linenumber, l_shipmode, l_shipdate, l_extendedprice from lineitem where l_shipmode in ('AIR', 'REG AIR') and l_shipinstruct = 'DELIVER IN PERSON'
-- Values that are drawn once and kept.
-- orders_split | o_orderkey
select o_orderkey, o_totalprice, case when rand() < 0.8 then 'train' else 'test' end as split from orders
-- orders_tagged | o_orderkey
select o_orderkey, o_custkey, uuid() as tag, o_orderdate from orders
-- lines_drawn | l_orderkey, l_linenumber
select l_orderkey, l_linenumber, l_extendedprice, rand() as drawn from lineitem
-- lines_first_seen | l_orderkey, l_linenumber
select l_orderkey, l_linenumber, l_extendedprice - l_discount as amount, rand() as priority from lineitem where l_shipmode = 'MAIL'
-- customers_in_groups | c_custkey
select c_custkey, c_mktsegment, cast(floor(rand() * 10) as int) as test_group, uuid() as visitor from customer
-- orders_sampled | o_orderkey
select o_orderkey, o_custkey, o_totalprice from orders where rand() < 0.1
-- lines_sampled_by_air | l_orderkey, l_linenumber
select l_orderkey, l_linenumber, l_extendedprice, l_quantity from lineitem where l_shipmode = 'AIR' and rand() < 0.3
-- groups_tagged | o_orderpriority, o_orderstatus
select o_orderpriority, o_orderstatus, count(*) as n, sum(o_totalprice) as total, uuid() as tag from orders group by o_orderpriority, o_orderstatus
-- Windows of time.
-- orders_last_year | o_orderkey
select o_orderkey, o_custkey, o_totalprice, o_orderdate from orders where o_orderdate > current_date() - interval 365 days
-- orders_last_90_days | o_orderkey
select o_orderkey, o_totalprice, o_orderdate from orders where o_orderdate >= date_sub(current_date(), 90)
-- lines_last_year | l_orderkey, l_linenumber
select l_orderkey, l_linenumber, l_extendedprice, l_shipdate from lineitem where l_shipdate >= current_date() - interval 1 year
-- lines_last_quarter_drawn | l_orderkey, l_linenumber
select l_orderkey, l_linenumber, l_extendedprice, rand() as drawn from lineitem where l_shipdate > current_date() - interval 90 days
-- lines_last_months | l_orderkey, l_linenumber
select l_orderkey, l_linenumber, l_suppkey, l_receiptdate from lineitem where l_receiptdate >= add_months(current_date(), -18) and l_receiptdate < current_date()
-- sold_last_90_days | l_partkey
select l_partkey, count(*) as lines, sum(l_quantity) as quantity from lineitem where l_shipdate > current_date() - interval 90 days group by l_partkey
-- revenue_by_day_last_year | o_orderdate
select o_orderdate, count(*) as orders, sum(o_totalprice) as revenue from orders where o_orderdate > current_date() - interval 365 days group by o_orderdate
-- lines_due | l_orderkey, l_linenumber
select l_orderkey, l_linenumber, l_commitdate, l_suppkey from lineitem where l_commitdate between current_date() - interval 30 days and current_date()
-- Joins with dimensions.
-- orders_of_customers | o_orderkey
select o_orderkey, o_totalprice, c_name, c_mktsegment from orders join customer on c_custkey = o_custkey
-- orders_with_nation | o_orderkey
select o_orderkey, o_totalprice, o_orderdate, n_name, r_name from orders join customer on c_custkey = o_custkey join nation on n_nationkey = c_nationkey join region on r_regionkey = n_regionkey
-- lines_of_parts | l_orderkey, l_linenumber
select l_orderkey, l_linenumber, p_name, p_brand, l_quantity, l_extendedprice from lineitem join part on p_partkey = l_partkey
-- lines_of_suppliers | l_orderkey, l_linenumber
select l_orderkey, l_linenumber, s_name, n_name, l_extendedprice from lineitem left join supplier on s_suppkey = l_suppkey left join nation on n_nationkey = s_nationkey
-- lines_with_cost | l_orderkey, l_linenumber
select l_orderkey, l_linenumber, l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity as profit from lineitem join partsupp on ps_partkey = l_partkey and ps_suppkey = l_suppkey
-- parts_offered | ps_partkey, ps_suppkey
select ps_partkey, ps_suppkey, p_name, s_name, ps_supplycost from partsupp join part on p_partkey = ps_partkey join supplier on s_suppkey = ps_suppkey
-- customers_with_nation | c_custkey
select c_custkey, c_name, n_name, r_name, c_acctbal from customer join nation on n_nationkey = c_nationkey join region on r_regionkey = n_regionkey
-- orders_of_segment_tagged | o_orderkey
select o_orderkey, c_name, uuid() as ticket from orders join customer on c_custkey = o_custkey where c_mktsegment = 'BUILDING'
-- Joins of facts.
-- lines_with_orders | l_orderkey, l_linenumber
select l_orderkey, l_linenumber, l_extendedprice, o_orderdate, o_orderstatus from lineitem join orders on o_orderkey = l_orderkey
-- lines_of_urgent_orders | l_orderkey, l_linenumber
select l_orderkey, l_linenumber, l_shipdate, o_orderpriority from lineitem join orders on o_orderkey = l_orderkey where o_orderpriority = '1-URGENT'
-- lines_fulfilment | l_orderkey, l_linenumber
select l_orderkey, l_linenumber, datediff(l_shipdate, o_orderdate) as days_to_ship, l_commitdate < l_receiptdate as late from lineitem left join orders on o_orderkey = l_orderkey
-- lines_with_everything | l_orderkey, l_linenumber
select l_orderkey, l_linenumber, o_orderdate, c_name, p_brand, s_name, l_extendedprice * (1 - l_discount) as net from lineitem join orders on o_orderkey = l_orderkey join customer on c_custkey = o_custkey join part on p_partkey = l_partkey join supplier on s_suppkey = l_suppkey
-- orders_with_late_lines | o_orderkey
select o_orderkey, o_orderdate, o_orderpriority from orders where exists (select 1 from lineitem where l_orderkey = o_orderkey and l_commitdate < l_receiptdate)
-- orders_without_returns | o_orderkey
select o_orderkey, o_custkey from orders where not exists (select 1 from lineitem where l_orderkey = o_orderkey and l_returnflag = 'R')
-- lines_with_orders_drawn | l_orderkey, l_linenumber
select l_orderkey, l_linenumber, l_extendedprice, o_orderdate, rand() as drawn from lineitem join orders on o_orderkey = l_orderkey where l_shipmode = 'SHIP'
-- customers_without_orders | c_custkey
select c_custkey, c_name, c_acctbal from customer left anti join orders on o_custkey = c_custkey
-- Groups.
-- revenue_by_day | o_orderdate
select o_orderdate, count(*) as orders, sum(o_totalprice) as revenue from orders group by o_orderdate
-- revenue_by_month | month
select date_trunc('month', o_orderdate) as month, count(*) as orders, sum(o_totalprice) as revenue, avg(o_totalprice) as average from orders group by date_trunc('month', o_orderdate)
-- orders_per_customer | o_custkey
select o_custkey, count(*) as orders, sum(o_totalprice) as spent, min(o_orderdate) as first_order, max(o_orderdate) as latest_order from orders group by o_custkey
-- totals_per_order | l_orderkey
select l_orderkey, count(*) as lines, sum(l_quantity) as quantity, sum(l_extendedprice * (1 - l_discount)) as net, max(l_shipdate) as last_shipped from lineitem group by l_orderkey
-- sold_per_part | l_partkey
select l_partkey, sum(l_quantity) as quantity, sum(l_extendedprice) as revenue from lineitem group by l_partkey
-- sold_per_supplier | l_suppkey
select l_suppkey, count(*) as lines, sum(l_extendedprice * (1 - l_discount)) as revenue, count_if(l_receiptdate > l_commitdate) as late from lineitem group by l_suppkey
-- shipped_by_day_and_mode | l_shipdate, l_shipmode
select l_shipdate, l_shipmode, count(*) as lines, sum(l_quantity) as quantity from lineitem group by l_shipdate, l_shipmode
-- clerks | o_clerk
select o_clerk, count(*) as orders, sum(o_totalprice) as total, count(distinct o_custkey) as customers from orders group by o_clerk
-- busy_customers | o_custkey
select o_custkey, count(*) as orders from orders group by o_custkey having count(*) > 20
-- stock_per_part | ps_partkey
select ps_partkey, sum(ps_availqty) as available, min(ps_supplycost) as cheapest from partsupp group by ps_partkey
-- revenue_by_nation | n_name
select n_name, count(*) as orders, sum(o_totalprice) as revenue from orders join customer on c_custkey = o_custkey join nation on n_nationkey = c_nationkey group by n_name
-- revenue_by_brand | p_brand
select p_brand, sum(l_extendedprice * (1 - l_discount)) as revenue, sum(l_quantity) as quantity from lineitem join part on p_partkey = l_partkey group by p_brand
-- revenue_by_segment_and_year | c_mktsegment, ordered_in
select c_mktsegment, year(o_orderdate) as ordered_in, sum(l_extendedprice) as revenue from lineitem join orders on o_orderkey = l_orderkey join customer on c_custkey = o_custkey group by c_mktsegment, year(o_orderdate)
-- orders_spread | orders
select orders, count(*) as customers from (select o_custkey, count(*) as orders from orders group by o_custkey) group by orders
-- modes_in_use | l_shipmode, l_shipinstruct
select distinct l_shipmode, l_shipinstruct from lineitem
-- Window functions.
-- orders_numbered | o_orderkey
select o_orderkey, o_custkey, o_orderdate, row_number() over (partition by o_custkey order by o_orderdate, o_orderkey) as nth from orders
-- latest_order | o_custkey
select o_custkey, o_orderkey, o_totalprice, o_orderdate from (select *, row_number() over (partition by o_custkey order by o_orderdate desc, o_orderkey) as nth from orders) where nth = 1
-- dearest_line | l_orderkey
select l_orderkey, l_linenumber, l_extendedprice from (select *, row_number() over (partition by l_orderkey order by l_extendedprice desc, l_linenumber) as nth from lineitem) where nth = 1
-- orders_running_total | o_orderkey
select o_orderkey, o_custkey, sum(o_totalprice) over (partition by o_custkey order by o_orderdate, o_orderkey) as spent_so_far from orders
-- lines_share | l_orderkey, l_linenumber
select l_orderkey, l_linenumber, l_extendedprice / sum(l_extendedprice) over (partition by l_orderkey) as share from lineitem
-- Marts.
-- mart_customers | c_custkey
with spent as (select o_custkey, count(*) as orders, sum(o_totalprice) as total, max(o_orderdate) as latest from orders group by o_custkey) select c_custkey, c_name, n_name, coalesce(orders, 0) as orders, coalesce(total, 0) as total, latest from customer join nation on n_nationkey = c_nationkey left join spent on o_custkey = c_custkey
-- mart_orders | o_orderkey
with lines as (select l_orderkey, count(*) as lines, sum(l_extendedprice * (1 - l_discount)) as net, max(l_receiptdate) as received from lineitem group by l_orderkey) select o_orderkey, o_custkey, o_orderdate, c_name, lines, net, received from orders join customer on c_custkey = o_custkey left join lines on l_orderkey = o_orderkey
-- mart_parts | p_partkey
with sold as (select l_partkey, sum(l_quantity) as quantity, sum(l_extendedprice) as revenue from lineitem group by l_partkey), stock as (select ps_partkey, sum(ps_availqty) as available from partsupp group by ps_partkey) select p_partkey, p_name, coalesce(quantity, 0) as sold, revenue, available from part left join sold on l_partkey = p_partkey left join stock on ps_partkey = p_partkey
-- mart_suppliers | s_suppkey
with shipped as (select l_suppkey, count(*) as lines, count_if(l_receiptdate > l_commitdate) as late from lineitem group by l_suppkey) select s_suppkey, s_name, n_name, coalesce(lines, 0) as lines, late / lines as late_share from supplier join nation on n_nationkey = s_nationkey left join shipped on l_suppkey = s_suppkey
-- mart_spenders_tagged | c_custkey
with spent as (select o_custkey, sum(o_totalprice) as total from orders group by o_custkey) select c_custkey, c_name, total, uuid() as voucher from customer join spent on o_custkey = c_custkey where total > 1000000
-- mart_order_status | o_orderkey
with late as (select distinct l_orderkey from lineitem where l_receiptdate > l_commitdate) select o_orderkey, o_orderstatus, l_orderkey is not null as late from orders left join late on l_orderkey = o_orderkey
-- Several tables under each other, and the first rows of an order.
-- events | kind, id, line
select 'order' as kind, o_orderkey as id, 0 as line, o_orderdate as happened_on from orders union all select 'shipment', l_orderkey, l_linenumber, l_shipdate from lineitem
-- partners | kind, id
select 'customer' as kind, c_custkey as id, c_name as name, c_acctbal as balance from customer union all select 'supplier', s_suppkey, s_name, s_acctbal from supplier
-- money_by_day | happened_on
select happened_on, sum(amount) as balance from (select o_orderdate as happened_on, o_totalprice as amount from orders union all select l_receiptdate, -l_extendedprice from lineitem where l_returnflag = 'R') group by happened_on
-- dearest_orders | o_orderkey
select o_orderkey, o_totalprice, o_orderdate from orders order by o_totalprice desc, o_orderkey limit 1000
