SELECT id, w[1] AS a, w[2] AS b FROM t, regexp_matches(u, '([aeiou])(.)', 'g') AS w;
SELECT id, w[1] AS a FROM t LEFT JOIN LATERAL regexp_matches(u, 'o') AS w ON true;
SELECT f, avg(x) AS a, avg(n) AS b, avg(m) AS c, avg(b) AS d,
  sum(n) / count(*) AS e, round(avg(m), 3) AS g FROM t GROUP BY f;
SELECT f, avg(n) AS a, avg(DISTINCT y) AS b, avg(n) FILTER (WHERE x > 0) AS c,
  100.0 * count(x) / count(*) AS d FROM t GROUP BY f;
SELECT id, avg(n) OVER (PARTITION BY f) AS a, avg(x) OVER (ORDER BY id ROWS 1 PRECEDING) AS b
  FROM t;
SELECT count(*), sum(x) + 1, max(x)::text, coalesce(min(s), 'q') FROM t;
SELECT DISTINCT ON (f) * FROM (SELECT f, id, n, s FROM t) AS q ORDER BY f, id DESC;
SELECT DISTINCT ON (f) f, id FROM t ORDER BY f, id DESC LIMIT 2;
SELECT id, y FROM t ORDER BY y FETCH FIRST 2 ROWS WITH TIES;
SELECT id, -y AS y FROM t ORDER BY y FETCH FIRST 2 ROWS WITH TIES;
SELECT f, count(*) AS n FROM t GROUP BY f ORDER BY 2 DESC, 1 FETCH FIRST 1 ROWS WITH TIES;
SELECT * FROM (SELECT f, id FROM t ORDER BY 2 DESC FETCH FIRST 3 ROWS WITH TIES) AS q;
SELECT f AS g FROM t GROUP BY g ORDER BY max(id) DESC, f FETCH FIRST ROW WITH TIES;
SELECT DISTINCT ON (f) f, y, count(*) AS c FROM t GROUP BY f, y ORDER BY f, count(*), y LIMIT 2;
SELECT DISTINCT ON (f) f, id FROM t ORDER BY 1, 2 DESC;
SELECT DISTINCT ON (1) f, -id AS id FROM t ORDER BY 1, id;
SELECT DISTINCT ON (y) -y AS y, x, id FROM t ORDER BY y, x, 3 DESC;
SELECT DISTINCT ON (y) -y AS y, id FROM t ORDER BY y DESC, 2 LIMIT 2;
SELECT DISTINCT upper(s) FROM t ORDER BY upper(s) DESC LIMIT 3;
SELECT DISTINCT f, count(*) FROM t GROUP BY f ORDER BY count(*), f LIMIT 2;
SELECT id, -x AS x FROM t WHERE x IS NOT NULL ORDER BY x + 0, id LIMIT 2;
SELECT y AS id, id AS y FROM t ORDER BY (y * 2) DESC, (2) LIMIT 3;
SELECT a.id, -b.x AS x FROM t AS a JOIN t AS b USING (id) ORDER BY abs(b.x), 1 LIMIT 2;
-- joins by names
SELECT a.*, b.y FROM (SELECT x, id FROM t WHERE x > 3) AS a LEFT JOIN (SELECT y, id FROM t
  WHERE y < 5) AS b USING (id);
SELECT b.*, a.x FROM (SELECT x, id FROM t WHERE x > 3) AS a NATURAL RIGHT JOIN
  (SELECT y, id FROM t WHERE y < 5) AS b;
SELECT id, a.x, b.y, c.s FROM (SELECT x, id FROM t WHERE x > 3) AS a FULL JOIN
  (SELECT y, id FROM t WHERE y < 5) AS b USING (id) LEFT JOIN (SELECT s, id
  FROM t) AS c USING (id);
SELECT id, count(*) AS n, max(c.s) AS s FROM (SELECT x, id FROM t WHERE x > 3) AS a
  RIGHT JOIN (SELECT y, id FROM t WHERE y < 5) AS b USING (id) LEFT JOIN (SELECT s, id
  FROM t) AS c USING (id) GROUP BY id;
SELECT id, f FROM t UNION ALL SELECT x, f FROM t ORDER BY 1 DESC NULLS LAST, 2 LIMIT 3;
SELECT y, count(*) AS c FROM t GROUP BY (1) ORDER BY 2 DESC, (1) LIMIT 2;
SELECT y, f, count(*) AS c FROM t GROUP BY ROLLUP (1, 2) HAVING count(*) > 1;
SELECT max(n) AS n, max(r) AS r, max(t) AS t FROM
  (SELECT row_number() OVER () AS n, rank() OVER (PARTITION BY f) AS r, ntile(3) OVER w AS t
  FROM t WINDOW w AS ()) AS q;
SELECT count(*) AS c FROM t GROUP BY ();
SELECT f, y + 1 AS z, grouping(f, y + 1) AS g, count(*) AS c, sum(x) AS s FROM t
  WHERE id < 0 GROUP BY ROLLUP (1, y + 1) HAVING f IS NULL ORDER BY 1;
SELECT count(*) AS c FROM t WHERE id < 0 GROUP BY GROUPING SETS ((), (), (f));
SELECT f, y, grouping(f, y) AS g, count(*) AS c FROM t GROUP BY CUBE (f, y);
SELECT f, array_agg(x ORDER BY id DESC) AS a, array_agg(DISTINCT y) AS b, array_agg(s
  ORDER BY x, id) AS c FROM t GROUP BY f;
SELECT f, array_agg(x ORDER BY id) FILTER (WHERE x > 5) AS a FROM t GROUP BY f;
SELECT array_agg(x ORDER BY id) AS a FROM t WHERE id > 1000;
SELECT every(f) AS a, bool_or(f) AS b, every(x > -10) AS c FROM t;
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY n) AS a, percentile_disc(0.3) WITHIN
  GROUP (ORDER BY b DESC) AS b, percentile_disc(0.5) WITHIN GROUP (ORDER BY dt) AS c FROM t;
SELECT id, g FROM t, generate_series(1, x) AS g;
SELECT t.id, g FROM t, generate_series('2024-01-31'::date, '2024-02-03'::date,
  '1 day') AS g WHERE g::date > dt;
SELECT g.m, count(t.id) AS c FROM generate_series(timestamp '2024-01-01',
  timestamp '2024-06-01', interval '1 month') AS g(m) LEFT JOIN t
  ON date_trunc('month', t.ts) = g.m GROUP BY g.m;
SELECT id, e FROM t, string_to_table(u, ',') AS e;
SELECT id, e.v, e.o FROM t LEFT JOIN LATERAL unnest(sarr) WITH ORDINALITY AS e(v, o) ON TRUE;
SELECT q.v / 2 AS c FROM (SELECT x AS v FROM t UNION ALL SELECT n FROM t) AS q;
SELECT f, string_agg(s, ',' ORDER BY id) AS a, string_agg(DISTINCT s, '-') AS b,
  bit_and(x) AS c FROM t GROUP BY f;
SELECT date_trunc('month', ts) AS m, round(sum(n) / nullif(sum(x), 0), 4) AS q FROM t GROUP BY 1;
SELECT a.id, b.id AS other FROM t AS a JOIN t AS b ON (a.x, a.id) < (b.x, b.id);
SELECT j ->> 'k' AS k, count(*) FROM t GROUP BY 1;
SELECT id, x IN (SELECT a.y FROM t AS a) AS a, x <> ALL (SELECT a.y
  FROM t AS a) AS b, x = ANY (SELECT a.y FROM t AS a WHERE a.id < 3) AS c FROM t;
SELECT id, k FROM t, jsonb_object_keys(j) AS k WHERE id IN (1, 2, 8);
SELECT id, lag(x) OVER w AS p, sum(x) OVER (w ROWS UNBOUNDED PRECEDING) AS r,
  sum(x) OVER (v ROWS 1 PRECEDING) AS q FROM t WINDOW w AS (PARTITION BY f ORDER BY id), v AS (w);
SELECT f, count(DISTINCT (y, s)) AS d FROM t GROUP BY f;
SELECT key, count(*) AS n FROM t, jsonb_each_text(CASE WHEN id IN (1,
  8) THEN j ELSE '{}' END) GROUP BY key;
SELECT id, e.k FROM t CROSS JOIN LATERAL jsonb_each_text(j) AS e(k, v)
  WHERE id NOT IN (3, 6, 7) AND e.v > '2';
SELECT id, e ->> 'x' AS x FROM t, jsonb_array_elements(j) AS e WHERE id = 3;
SELECT id, e.o FROM t LEFT JOIN LATERAL jsonb_object_keys(CASE WHEN id IN (1,
  8) THEN j ELSE '{}' END) AS e(o) ON TRUE;
SELECT id, ARRAY(SELECT a.x FROM t AS a WHERE a.y = t.y ORDER BY a.id) AS c FROM t;
SELECT id, ARRAY(SELECT DISTINCT a.y FROM t AS a WHERE a.f = t.f ORDER BY a.y) AS c FROM t;
SELECT ARRAY(SELECT a.x FROM t AS a WHERE a.id > 100) AS c;
SELECT id, e.a, e.b FROM t, unnest(arr, sarr) AS e(a, b);
SELECT id, g / 2 AS h FROM t, generate_subscripts(arr, 1) AS g;
SELECT f, round(extract(epoch from avg(ts - timestamp '2020-01-01')) / 86400,
  2) AS a, extract(epoch from sum(ts - timestamp '2020-01-01')) AS b FROM t GROUP BY f;
SELECT f, avg(extract(epoch from ts)) AS a, avg(extract(year from ts)) AS c FROM t GROUP BY f;
SELECT f, round(sum(n) / (SELECT sum(n) FROM t), 3) AS share FROM t GROUP BY f;
WITH s AS (SELECT f, sum(n) AS total FROM t GROUP BY f) SELECT f, round(100 * total /
  (SELECT sum(n) FROM t), 2) AS share FROM s;
-- less common
SELECT f, (array_agg(x ORDER BY id))::text[] AS a, coalesce(array_agg(dt
  ORDER BY id) FILTER (WHERE x > 5), '{}') AS b FROM t GROUP BY f;
SELECT ARRAY(SELECT a.x FROM t AS a ORDER BY a.id)::text[] AS c;
SELECT id, e FROM t, unnest(coalesce(sarr, '{}')) AS e;
SELECT id, e FROM t, unnest('{1,2}'::int[]) AS e WHERE e <> x;
SELECT id, e.a / 2 AS p, e.b || '!' AS q FROM t, unnest(arr, sarr) AS e(a, b);
SELECT id, e / 2 AS h, e::text AS k FROM t, unnest(arr || 4) AS e WHERE e > 2;
SELECT f, avg(e) AS a, sum(e) / 2 AS b FROM t, unnest(arr) AS e GROUP BY f;
SELECT id, (SELECT sum(e) FROM unnest(t.arr) AS e) / 2 AS c FROM t;
SELECT array_to_string(array_agg(e ORDER BY e), ',') AS c FROM t, unnest(sarr) AS e;
SELECT a.id FROM ONLY t AS a JOIN ONLY t AS b ON a.x = b.y;
SELECT id, e.v FROM t, LATERAL (VALUES (t.x), (t.y)) AS e(v);
SELECT id, e.k, e.v / 2 AS c FROM t CROSS JOIN LATERAL (VALUES ('a', t.x), ('b', t.y),
  ('c', NULL)) AS e(k, v);
SELECT id, e.v FROM t LEFT JOIN LATERAL (VALUES (n), (x), (m)) AS e(v) ON e.v > 2;
SELECT id, e.column2 AS c FROM t CROSS JOIN LATERAL (VALUES (n, s), (x, u)) AS e;
SELECT id, v.* FROM t JOIN (VALUES (1, 2), (2, 3)) AS v ON v.column1 = t.y;
WITH v(k) AS (VALUES (1), (2)) SELECT id, k / 2 AS c FROM t JOIN v ON v.k = t.y;
WITH v AS (VALUES (1, 'p'), (2, NULL)) SELECT id, column2 FROM t JOIN v ON column1 = t.y;
SELECT id, k FROM t JOIN (VALUES (1.5), (2)) AS v(k) ON v.k < t.n;
SELECT x FROM t UNION ALL VALUES (1), (2);
SELECT id FROM t WHERE x IN (VALUES (1), (7));
SELECT id, (SELECT max(v.k) FROM (VALUES (t.x), (t.y)) AS v(k)) AS c FROM t;
SELECT id, (SELECT sum(v.k) / 2 FROM (VALUES (x), (y), (NULL)) AS v(k)) AS c FROM t;
SELECT column1, id FROM t, (VALUES (1), (2)) WHERE column1 = y;
SELECT id, generate_subscripts(arr, 1) AS g FROM t;
SELECT id, g FROM t, generate_series(ts, timestamp '2024-06-01', '1 month') AS g WHERE id <> 5;
SELECT id, g FROM t, generate_series(dt, date '2025-03-01', '3 months') AS g WHERE id <> 5;
SELECT id, g FROM t, generate_series(tz, timestamptz '2025-03-01 00:00+00', '1 year') AS g;
SELECT id, g::date AS d FROM t, generate_series(dt, dt + interval '2 months', '1 month') AS g;
-- what is asked of the row in the FROM of a subquery
SELECT id, ARRAY(SELECT a.x FROM t AS a WHERE a.y = t.y ORDER BY a.id DESC LIMIT 2) AS c FROM t;
SELECT id, ARRAY(SELECT a.x AS v FROM t AS a WHERE a.f = t.f ORDER BY v DESC) AS c FROM t;
SELECT id, ARRAY(SELECT a.s FROM t AS a WHERE a.y = t.y ORDER BY 1 DESC) AS c FROM t;
SELECT id, ARRAY(SELECT a.y + 1 FROM t AS a WHERE a.f = t.f GROUP BY a.y
  ORDER BY count(*) * 100 + a.y) AS c FROM t;
SELECT id, ARRAY(SELECT DISTINCT a.y FROM t AS a WHERE a.f = t.f ORDER BY a.y DESC
  LIMIT 1) AS c FROM t;
SELECT id, ARRAY(SELECT a.x FROM t AS a WHERE a.y = t.y UNION SELECT 4
  ORDER BY 1 DESC) AS c FROM t;
SELECT id, (SELECT count(*) FROM t AS a, unnest(t.arr) AS e(v) WHERE a.id = e.v) AS c FROM t;
SELECT id, (SELECT sum(e.v * a.x) FROM t AS a CROSS JOIN LATERAL unnest(t.arr) AS e(v)
  WHERE a.id = e.v) AS c FROM t;
SELECT id, (SELECT count(*) FROM t AS a, generate_series(1, t.x) AS e(v)
  WHERE a.id = e.v) AS c FROM t;
SELECT id, (SELECT array_agg(q.x) FROM (SELECT a.x FROM t AS a WHERE a.y = t.y
  ORDER BY a.id DESC LIMIT 3) AS q) AS c FROM t;
SELECT id FROM t WHERE EXISTS (SELECT 1 FROM unnest(t.sarr) AS e(v) JOIN t AS a ON a.s = e.v);
SELECT id, (SELECT string_agg(q.s, ',' ORDER BY q.s) FROM (SELECT DISTINCT a.s FROM t AS a
  WHERE a.y = t.y) AS q) AS c FROM t;
SELECT id, l.y, l.n FROM t CROSS JOIN LATERAL (SELECT q.y, q.n FROM
  (SELECT a.y, count(*) AS n FROM t AS a WHERE a.x < t.x GROUP BY a.y) AS q
  ORDER BY q.n DESC, q.y LIMIT 1) AS l;
SELECT id, (SELECT count(c.id) FROM t AS a LEFT JOIN t AS c
  ON c.id = a.x AND c.y = t.y) AS c FROM t;
SELECT id, (SELECT sum(q.n) FROM (SELECT a.y, count(*) AS n FROM t AS a GROUP BY a.y
  HAVING count(*) < t.x) AS q) AS c FROM t;
SELECT id, (WITH q AS (SELECT a.x FROM t AS a WHERE a.y = t.y) SELECT round(avg(x), 3)
  FROM q) AS c FROM t;
-- Types below stars.
SELECT id, d::numeric(30, 2) AS c, floor(d) AS f, n / 3 AS q, b / 2 AS h
  FROM (SELECT * FROM t) AS a;
WITH a AS (SELECT * FROM t WHERE x > 1), c AS (SELECT a.*, a.id AS k FROM a)
  SELECT k, n / 7 AS q, m > '12345678901234.123457' AS g, d * '-1e1' AS p, arr || 4 AS l FROM c;
SELECT id, n / 3 AS q, x / 2 AS h FROM t JOIN (SELECT * FROM t WHERE f) AS a USING (id, x, n);
SELECT a.id, a.n / 3 AS q, l.h / 2 AS h
  FROM (SELECT * FROM t) AS a CROSS JOIN LATERAL (SELECT a.x + 1 AS h, a.*) AS l;
SELECT id, row_to_json(a) ->> 'x' AS c FROM (SELECT id, x FROM t) AS a;
SELECT q.k, q.v / 2 AS h FROM (SELECT id, x FROM t UNION ALL SELECT y, id FROM t) AS q (k, v);
