-- Syntax that is easy to lose: forms of the grammar that look like calls, rows made in the select list, words before a
-- table's alias. The format is that of levels.sql.

SELECT id, timestampadd(MONTH, 1, ts) AS a, timestampdiff(DAY, ts, other) AS b, dateadd(HOUR, 2, ts) AS c FROM t

-- column a command now
SELECT id, timestampdiff(HOUR, ts, now()) AS a FROM t

SELECT id, name LIKE ANY ('a%', 'b%') AS x, name ILIKE ALL ('%c') AS y, name NOT LIKE SOME ('d', 'e') AS z FROM t

-- column x user current_user
SELECT id, name LIKE ANY ('a%', current_user()) AS x FROM t

SELECT id, any(flag) AS a, some(flag) AS s, every(flag) AS e FROM t GROUP BY id

-- rows nondeterministic
SELECT id FROM (SELECT * FROM t) TABLESAMPLE (5 PERCENT) s WHERE s.id > 1

-- rows order-dependent
SELECT s.id FROM (SELECT * FROM t) TABLESAMPLE (5 ROWS) AS s JOIN u ON u.id = s.id

-- column t command current_date
-- rows command
SELECT id, explode(sequence(DATE'2024-01-01', current_date(), INTERVAL 1 DAY)) AS t FROM t

-- column id nondeterministic TRANSFORM
-- column name nondeterministic TRANSFORM 1:8
-- rows nondeterministic
-- error PER_ROW_IN_UNIQUE_KEY 1:8
-- error PER_ROW_IN_GENERATOR 1:8
SELECT TRANSFORM(id, name) USING 'cat' AS (id, name STRING) FROM t

-- column key nondeterministic TRANSFORM
-- column value nondeterministic TRANSFORM
-- rows nondeterministic
-- error UNKNOWN_UNIQUE_KEY
-- error PER_ROW_IN_GENERATOR
SELECT TRANSFORM(id, name) USING 'cat' FROM t

-- column u command '12:34:56'
SELECT id, TIME'12:34:56' AS t, TIMESTAMP'12:34:56' AS u, CAST('12:00' AS TIME(3)) AS v FROM t

-- error UNSUPPORTED_SYNTAX 1:16
SELECT id FROM STREAM t

-- error UNSUPPORTED_SYNTAX 1:18
SELECT s.id FROM STREAM db.t AS s

-- error UNSUPPORTED_SYNTAX 1:16
SELECT id FROM stream(t)

-- error UNSUPPORTED_SYNTAX 1:12
-- error UNSUPPORTED_SYNTAX 1:21
SELECT id, :p AS p, ? AS q FROM t

-- table t id bigint
SELECT IDENTIFIER('id') FROM t

-- table t id bigint, v2 int
-- error UNSUPPORTED_SYNTAX 1:12
-- column y nondeterministic identifier
SELECT id, IDENTIFIER('v' || '2') AS y FROM t

-- table t id bigint, v2 int
-- error UNSUPPORTED_SYNTAX 1:24
-- rows nondeterministic
-- predicate WHERE nondeterministic
SELECT id FROM t WHERE IDENTIFIER('v' || '2') > 1

-- The clock hidden in a column or scalar subquery, or where it does not decide alone: no run solves it.

-- table t id bigint, d date
-- rows command
-- predicate WHERE command clock
SELECT id FROM (SELECT *, datediff(current_date(), d) AS age FROM t) WHERE age <= 30

-- table t id bigint, d date
-- rows command
-- predicate WHERE command clock
WITH p AS (SELECT current_date() AS today), w AS (SELECT date_sub(today, 7) AS since FROM p) SELECT t.id FROM t CROSS JOIN w WHERE t.d >= w.since

-- table t id bigint, d date
-- rows command
-- predicate WHERE command clock
WITH w AS (SELECT current_date() AS since) SELECT t.id FROM t LEFT JOIN w ON true WHERE t.d >= w.since

-- table t id bigint, ts timestamp
-- rows command
-- predicate WHERE command clock
WITH a AS (SELECT id, datediff(now(), ts) AS age FROM t) SELECT id FROM a WHERE age < 5

-- table t id bigint, ts timestamp
-- rows command
-- predicate WHERE command clock
WITH a AS (SELECT id, ts, ts > now() - INTERVAL 7 DAYS AS recent FROM t) SELECT id FROM a WHERE NOT recent

-- table t id bigint, d date
-- rows command
-- predicate WHERE command clock
WITH p AS (SELECT current_date() AS d) SELECT id FROM t WHERE d BETWEEN (SELECT d FROM p) - 7 AND (SELECT current_date())

-- table t id bigint, d date
-- table u id bigint, day date
-- rows command
-- predicate WHERE command clock
SELECT id FROM t WHERE d >= (SELECT max(day) FROM u WHERE day <= current_date())

-- table t k bigint, ts timestamp, d date
-- key k
-- column idle command current_date
-- rows command
-- predicate HAVING command clock
SELECT k, datediff(current_date(), max(d)) AS idle FROM t GROUP BY k HAVING idle < 30

-- table t k bigint, ts timestamp, d date
-- key k
-- rows command
-- predicate HAVING command clock
SELECT k, max(d) AS last_day FROM t GROUP BY k HAVING last_day >= current_date() - 30

-- table t id bigint, k bigint, ts timestamp
-- rows command
-- predicate QUALIFY command clock
SELECT id FROM t QUALIFY max(ts) OVER (PARTITION BY k) > now() - INTERVAL 1 DAY

-- table t id bigint, k bigint
-- table u id bigint, ts timestamp
-- rows command
-- predicate JOIN ON command clock
SELECT t.id FROM t LEFT JOIN u ON t.k = u.id AND u.ts > now() - INTERVAL 1 DAY

-- table t id bigint, k bigint
-- table u id bigint, ts timestamp
-- rows command
-- predicate WHERE command clock
SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.k AND u.ts > now() - INTERVAL 1 DAY)

-- table t id bigint, ts timestamp
-- rows command
-- predicate WHERE command clock
SELECT id FROM t WHERE ts > now() - INTERVAL 1 MONTH

-- Names of columns without an alias are Spark's: they are referred to, and two different ones do not clash.

-- column rand() nondeterministic rand
SELECT id, CASE WHEN a > 1 THEN 'x' END, CASE WHEN a > 2 THEN 'y' END, rand(), count(*) OVER (PARTITION BY a) FROM t

-- column c nondeterministic rand
SELECT id, `CASE WHEN (a > 1) THEN x ELSE rand() END` AS c FROM (SELECT id, CASE WHEN a > 1 THEN 'x' ELSE rand() END FROM t)

-- table t id bigint, m map<string:string>
SELECT id, k FROM (SELECT id, key AS k, value FROM t LATERAL VIEW explode(m) e)

-- table t id bigint, ts timestamp
-- column ts command now
-- rows command
-- predicate WHERE command clock solved
SELECT id, now() AS ts FROM t WHERE ts > now() - INTERVAL 1 DAY

-- Pipes, TABLE, Hive's words for windows, operators of the lexer.

-- column d command current_date
FROM t |> CROSS JOIN LATERAL (SELECT current_date() AS d) x |> SELECT id, d

-- column r nondeterministic rand
FROM t |> JOIN (FROM u |> WHERE p > 3 |> SELECT id AS k, rand() AS r) x ON t.id = x.k |> SELECT id, r

-- column r nondeterministic rand
-- rows nondeterministic
-- error PER_ROW_IN_DISTINCT 1:31
FROM t |> SELECT DISTINCT id, rand() AS r

-- column s order-dependent first_value
FROM t |> SELECT id, first_value(a) OVER w AS s WINDOW w AS (PARTITION BY k ORDER BY a)

-- rows order-dependent
FROM t |> LIMIT 5 |> WHERE a > 1 |> SELECT id

FROM t |> DISTRIBUTE BY a |> SORT BY b |> SELECT id

-- table t id bigint
-- table u id bigint
FROM t |> INTERSECT TABLE u |> SELECT id

-- table t id bigint
-- table u id bigint
FROM t |> SELECT id |> UNION ALL SELECT id FROM u |> WHERE id > 3

-- table t id bigint
-- table u id bigint
FROM t |> SELECT id |> EXCEPT DISTINCT TABLE u |> UNION ALL VALUES (1)

-- table db.t id bigint
SELECT id FROM db.t UNION ALL TABLE db.t

WITH a(id) AS (VALUES (1), (2)) TABLE a

-- error PER_ROW_IN_UNIQUE_KEY
-- column id nondeterministic f
-- error PER_ROW_IN_GENERATOR
-- rows nondeterministic
SELECT id FROM f(TABLE db.t, 3)

-- column f order-dependent first_value
SELECT id, row_number() OVER (DISTRIBUTE BY k SORT BY id) AS m, max(a) OVER (CLUSTER BY k) AS n, first_value(a) OVER (DISTRIBUTE BY k SORT BY a) AS f FROM t

-- column c command now
SELECT id, timediff(SECOND, ts, now()) AS c, a !> 1 AS x, a !< 2 AS y FROM t

SELECT id, grouping__id AS g FROM t GROUP BY id WITH CUBE

-- table t id bigint, ts timestamp
-- column other_age command now
-- rows command
-- predicate WHERE command clock
WITH a AS (SELECT id, ts, datediff(now(), ts) AS age FROM t) SELECT x.id, y.age AS other_age FROM a x JOIN a y ON x.id = y.id WHERE y.age < 5

-- table t id bigint, ts timestamp
-- rows command
-- predicate WHERE command clock
WITH a AS (SELECT id, ts, datediff(now(), ts) AS age FROM t) SELECT x.id FROM a x JOIN a y ON x.id = y.id WHERE x.age < 5

-- column a session session.v
-- column b session system.session.v
-- error UNSUPPORTED_SYNTAX 1:12
-- error UNSUPPORTED_SYNTAX 1:28
-- table t id bigint
SELECT id, session.v AS a, system.session.v AS b FROM t
