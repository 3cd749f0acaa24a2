SELECT id, (SELECT json_agg(q) FROM (SELECT a.x, a.s FROM t AS a WHERE a.y = t.y
  ORDER BY a.id DESC LIMIT 2) AS q) AS c FROM t;
SELECT f, (SELECT jsonb_agg(q.s) FILTER (WHERE q.s <> '') FROM (SELECT DISTINCT a.s
  FROM t AS a WHERE a.f = t.f ORDER BY a.s DESC) AS q) AS c FROM t;
SELECT id, corr(x, y) AS c, corr(x, 2) AS f FROM t GROUP BY id;
SELECT f, corr(x, 2) AS a, corr(x, y) FILTER (WHERE x > 1) AS b FROM t GROUP BY f;
SELECT id, corr(d, 1) OVER (PARTITION BY f) AS c FROM t;
SELECT f, sum(ts - timestamp '2024-01-31 03:00') AS s,
  avg(ts - timestamp '2024-01-31 03:00') AS a FROM t GROUP BY f;
SELECT f, avg(timestamptz '2024-01-31 03:00+00' - tz) FILTER (WHERE id < 4) AS a FROM t
  GROUP BY f;
SELECT ts::time AS c, count(*) AS n FROM t GROUP BY 1;
SELECT f, min(ts::time) AS a, max(tz::time) AS b FROM t GROUP BY f;
WITH q AS (SELECT id, ts::time AS c FROM t) SELECT a.id, b.id AS other FROM q AS a
  JOIN q AS b ON a.c = b.c WHERE a.c > '10:00';
SELECT t.id, r.a, r.k FROM t, jsonb_to_record(t.j) AS r(a text, k text)
  WHERE id NOT IN (3, 6, 7);
SELECT t.id, r.sku, r.qty + 1 AS n, r.price * 2 AS p, r.sub ->> 'z' AS z, r.ok, r.day
  FROM t, jsonb_to_recordset('[{"sku": "a", "qty": 2, "price": 1.50, "sub": {"z": "q"},
  "ok": true, "day": "2024-02-03"}, {"sku": null, "sub": null}, {"sub": [1,
  2]}]'::jsonb) AS r(sku text, qty int, price numeric(8, 2), sub jsonb, ok boolean, day date);
SELECT id, w[1] AS c FROM t, regexp_matches(s, '(\w)', 'g') AS w;
SELECT id, ts - dt AS c FROM t ORDER BY c DESC, id LIMIT 3;
SELECT id, ts - timestamp '2020-01-01' AS c FROM t ORDER BY 2, 1 LIMIT 2;
SELECT f, max(ts) - min(ts) AS a, min(ts - dt) AS b FROM t GROUP BY f;
SELECT ts - dt AS c, count(*) AS n FROM t GROUP BY 1;
SELECT DISTINCT ts - dt AS c FROM t;
SELECT row_to_json(t) AS c FROM t;
SELECT f, jsonb_agg(ARRAY[dt] ORDER BY id) AS c FROM t GROUP BY f;
SELECT to_jsonb(q) AS c FROM (SELECT id, d, arr FROM t) AS q;
SELECT f, jsonb_agg(q ORDER BY q.id) AS c FROM (SELECT id, f, s, ts FROM t) AS q GROUP BY f;
SELECT t.id, (SELECT jsonb_agg(q ORDER BY q.id) FROM (SELECT a.id, a.x FROM t AS a
  WHERE a.y = t.y) AS q) AS c FROM t;
SELECT id, e.key, e.value FROM t, jsonb_each(j) AS e WHERE id NOT IN (3, 6, 7);
SELECT f, jsonb_object_agg(id::text, ts) AS a, jsonb_object_agg(id::text,
  d) FILTER (WHERE x > 2) AS b FROM t WHERE id < 9 GROUP BY f;
SELECT id, e FROM t, jsonb_array_elements_text(j -> 'b' -> 'd') AS e WHERE id = 1;
SELECT f, stddev(x) AS a, variance(n) AS b, corr(x, y) AS c, avg(d) AS e FROM t GROUP BY f;
SELECT jsonb_agg(x ORDER BY id) AS a, json_agg(s ORDER BY id) AS b FROM t;
SELECT f, jsonb_agg(ts ORDER BY id) AS a, jsonb_agg(d ORDER BY id) AS b, jsonb_agg(tz
  ORDER BY id) AS c FROM t GROUP BY f;
SELECT j -> 'a' AS a, count(*) AS n FROM t GROUP BY 1;
SELECT sum(n / 3) AS a, sum(n / 3) / 7 AS b FROM t;
SELECT f, percentile_cont(0.5) WITHIN GROUP (ORDER BY n) AS a FROM t GROUP BY f;
