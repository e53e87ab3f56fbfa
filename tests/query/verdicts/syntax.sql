-- Syntax that is easy to lose: forms of the grammar that look like calls, rows made in the select list, words before a
-- table's alias. The format is that of levels.sql.

SELECT id, timestampadd(MONTH, 1, ts) AS a, timestampdiff(DAY, ts, other) AS b, dateadd(HOUR, 2, ts) AS c FROM t

-- column a command now
SELECT id, timestampdiff(HOUR, ts, now()) AS a FROM t

SELECT id, name LIKE ANY ('a%', 'b%') AS x, name ILIKE ALL ('%c') AS y, name NOT LIKE SOME ('d', 'e') AS z FROM t

-- column x user current_user
SELECT id, name LIKE ANY ('a%', current_user()) AS x FROM t

SELECT id, any(flag) AS a, some(flag) AS s, every(flag) AS e FROM t GROUP BY id

-- rows order-dependent
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
SELECT TRANSFORM(id, name) USING 'cat' AS (id, name STRING) FROM t

-- column key nondeterministic TRANSFORM
-- column value nondeterministic TRANSFORM
-- rows nondeterministic
-- error UNKNOWN_UNIQUE_KEY
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
