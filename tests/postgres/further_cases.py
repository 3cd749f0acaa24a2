"""Less common expressions and queries of PostgreSQL users, in the order of the documentation."""

from __future__ import annotations

EXPRESSIONS = [
    # casts to arrays
    "ARRAY[]::int[]", "coalesce(arr, ARRAY[]::int[])", "coalesce(sarr, '{}')", "NULL::int[]",
    "'{1, 2,NULL, \"3\"}'::int[]", "'{ }'::int[]", "CAST(NULL AS text[])",
    r"""'{a, "b,c", null, "null", "x\"y", d e , \{z, ""}'::text[]""",
    "'{1.5,2.25}'::numeric(10,1)[]", "'{1.5,2}'::numeric[]", "'{t,f,true}'::bool[]",
    "'{1.5,-2e3}'::double precision[]", "'{2024-02-29 10:00:00, 2024-01-01}'::timestamp[]",
    "'{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}'::uuid[]", "arr::text[]", "arr::bigint[]",
    "arr::numeric(10,2)[]", "arr::numeric[]", "arr::float8[]", "arr::bool[]", "sarr::varchar(1)[]",
    "ARRAY[-2.5, 2.5, n]::int[]", "ARRAY[0.5::float8, 1.5, d]::int[]", "ARRAY[x, NULL]::bigint[]",
    "ARRAY[x, n]::text[]", "ARRAY[dt, ts]::text[]", "ARRAY['1', '2']::int[]", "ARRAY[tz]::text[]",
    "ARRAY[f]::text[]", "ARRAY[ts]::date[]", "ARRAY[ts]::timestamptz[]", "ARRAY[n, 2]::numeric[]",
    "(string_to_array('1,2,' || x, ',')::int[])[3] + 1", "x = ANY ('{7,2,NULL}'::int[])",
    "x <> ALL ('{7,2}'::int[])", "arr @> ARRAY[]::int[]", "arr || '{4,5}'::int[]",
    "CASE WHEN id < 3 THEN arr ELSE '{}' END", "coalesce(arr, '{}') || 4",
    "array_to_string(arr::text[], ',', '*')", "array_to_string(ARRAY[ts], ',')",
    # dates and times
    "make_timestamptz(2024, 2, id, 10, 30, 45.5)",
    "make_timestamptz(2024, 2, id, abs(x) % 24, 0, 60)",
    "make_timestamptz(2024, 10, 27, 2, 30, 0, 'Europe/Berlin')", "date_add(tz, interval '1 month')",
    "date_add(tz, '1 month 2 days 03:00')", "date_add(tz, x * interval '1 day', 'Europe/Berlin')",
    "date_subtract(tz, interval '1 year 1 hour', 'America/New_York')", "tz AT LOCAL", "ts AT LOCAL",
    *(f"date_trunc('{unit}', {of})" for unit in ("decade", "century", "millennium")
      for of in ("ts", "tz", "dt", "tz, 'Europe/Berlin'")),
    "date_trunc('century', timestamp '2000-12-31 10:00')",
    # names, bytes, and rows of constants
    "quote_ident(s)", "quote_ident(u)", "quote_ident('between')", "quote_ident('a\"b')",
    "quote_ident(x::text)", "format('%I.%I = %L%%', 'order', coalesce(s, ''), u)", "bin || bin",
    "encode(sha256(bin || s::bytea), 'hex')", "x IN (VALUES (1), (7))",
    # filters of paths
    "j @? '$.b.d[*] ? (@ > 1)'", "jsonb_path_exists(j, '$ ? (@.k == \"v\" && exists(@.a))')",
    "jsonb_path_exists(j, '$.a ? (@ >= 1) ? (@ < 3)')",
]  # fmt: skip

_STRINGS = (
    '[null, null, 1, null, [null], "null", ":null", ",null", {"x\\":null": "a\\\\\\":null", '
    '"y\\\\": null, "":null, "z":"[null,null]"}]'
)
"""Texts that look like the members of an object, and like its nulls."""
_OF_ALL_KINDS = (
    '{"a": [{"b": 1}, {"b": 2}, {"b": "2"}, {"b": null}, {"c": 3}, {"b": [0, 5]}, {"b": true}, '
    '{"b": {}}, 5, null, 1e-30, 2.50, "ab", "é😀", [3, "x"]]}'
)
REPRESENTED = [
    *(f"jsonb_path_query_array('{_OF_ALL_KINDS}', '{path}')" for path in (
        "$.a[*] ? (@.b > 1)", "$.a ? (@.b <= 2)", "$.a[*] ? (@.b != 1)", '$.a[*] ? (@.b == "2")',
        '$.a[*] ? (@.b <> "2")', "$.a[*] ? (@.b == null)", "$.a[*] ? (@.b <> null)",
        "$.a[*] ? (@.b >= null)", "$.a[*] ? (@.b == true).b", "$.a[*] ? (@.b >= false)",
        "$.a[*] ? (exists(@.c) || @.b > 1 && @.b < 5)", "$.a[*] ? (@ > 0)", "$.a[*] ? (@ == 2.5)",
        "$.a[*] ? ((exists (@.c) || @.b > 1) && (@.b[1] >= 5 || @.c == 3)) . c",
        '$.a[*] ? (@ starts with "a")', '$.a[*] ? (@ > "b")', "$ ? (@.a[*].b > 1).a[0]",
        "$.a[*].b ? (@ > 1)", "$.a[*] ? (@[*] == 3)",
    )),
    "json_value(j, '$.b.d[*] ? (@ == \"z\")')", "json_query(j, '$ ? (@.a > 2)')",
    "jsonb_path_query_first(j, '$.b ? (@.c == \"x y\").d[0]')",
    "array_to_json(arr)", "array_to_json(ARRAY[ts], false)", "jsonb_strip_nulls(j)",
    *(f"jsonb_strip_nulls('{json}'{arrays})" for arrays in ("", ", true") for json in (
        _STRINGS, '{"b":1,"a":null,"c":null}', '{"a":null,"b":[{"a":null}],"d":2,"e":null}',
        "null", '[null,{"a":null}]', '[{"b":",,"},{"c":"{,"},[],{}]',
    )),
    "json_strip_nulls('{\"a\": null, \"b\": 1}'::json)", "jsonb_strip_nulls(j) ->> 'k'",
    *(f"""jsonb_insert('{{"a": [0, 1, 2], "e": []}}', '{{a,{at}}}', to_jsonb(s), {after})"""
      for after in ("false", "true") for at in (0, 1, 2, 3, 7, -1, -3, -7)),
    """jsonb_insert('{"e": []}', '{e,2}', '1')""", """jsonb_insert('{"a": 1}', '{z,b}', '1')""",
    "CASE WHEN id NOT IN (3, 6, 7) THEN jsonb_insert(j, '{z}', to_jsonb(x)) END",
    "CASE WHEN id = 3 THEN jsonb_insert(j, '{2,y}', '[]') END",
    "justify_days(ts - timestamp '2020-01-01')", "justify_interval(timestamp '2020-01-01' - ts)",
    "justify_days(tz - timestamptz '2024-01-01 00:00+00')::text", "justify_interval(ts - dt)",
    "justify_days(CASE WHEN x > 5 THEN ts - timestamp '2020-01-01' END)",
]  # fmt: skip

QUERIES = [
    "SELECT f, (array_agg(x ORDER BY id))::text[] AS a,"
    " coalesce(array_agg(dt ORDER BY id) FILTER (WHERE x > 5), '{}') AS b FROM t GROUP BY f",
    "SELECT ARRAY(SELECT a.x FROM t AS a ORDER BY a.id)::text[] AS c",
    "SELECT id, e FROM t, unnest(coalesce(sarr, '{}')) AS e",
    "SELECT id, e FROM t, unnest('{1,2}'::int[]) AS e WHERE e <> x",
    "SELECT id, e.a / 2 AS p, e.b || '!' AS q FROM t, unnest(arr, sarr) AS e(a, b)",
    "SELECT id, e / 2 AS h, e::text AS k FROM t, unnest(arr || 4) AS e WHERE e > 2",
    "SELECT f, avg(e) AS a, sum(e) / 2 AS b FROM t, unnest(arr) AS e GROUP BY f",
    "SELECT id, (SELECT sum(e) FROM unnest(t.arr) AS e) / 2 AS c FROM t",
    "SELECT array_to_string(array_agg(e ORDER BY e), ',') AS c FROM t, unnest(sarr) AS e",
    "SELECT a.id FROM ONLY t AS a JOIN ONLY t AS b ON a.x = b.y",
    "SELECT id, e.v FROM t, LATERAL (VALUES (t.x), (t.y)) AS e(v)",
    "SELECT id, e.k, e.v / 2 AS c FROM t CROSS JOIN LATERAL"
    " (VALUES ('a', t.x), ('b', t.y), ('c', NULL)) AS e(k, v)",
    "SELECT id, e.v FROM t LEFT JOIN LATERAL (VALUES (n), (x), (m)) AS e(v) ON e.v > 2",
    "SELECT id, e.column2 AS c FROM t CROSS JOIN LATERAL (VALUES (n, s), (x, u)) AS e",
    "SELECT id, v.* FROM t JOIN (VALUES (1, 2), (2, 3)) AS v ON v.column1 = t.y",
    "WITH v(k) AS (VALUES (1), (2)) SELECT id, k / 2 AS c FROM t JOIN v ON v.k = t.y",
    "WITH v AS (VALUES (1, 'p'), (2, NULL)) SELECT id, column2 FROM t JOIN v ON column1 = t.y",
    "SELECT id, k FROM t JOIN (VALUES (1.5), (2)) AS v(k) ON v.k < t.n",
    "SELECT x FROM t UNION ALL VALUES (1), (2)", "SELECT id FROM t WHERE x IN (VALUES (1), (7))",
    "SELECT id, (SELECT max(v.k) FROM (VALUES (t.x), (t.y)) AS v(k)) AS c FROM t",
    "SELECT id, (SELECT sum(v.k) / 2 FROM (VALUES (x), (y), (NULL)) AS v(k)) AS c FROM t",
    "SELECT column1, id FROM t, (VALUES (1), (2)) WHERE column1 = y",
    "SELECT id, generate_subscripts(arr, 1) AS g FROM t",
    "SELECT id, g FROM t, generate_series(ts, timestamp '2024-06-01', '1 month') AS g"
    " WHERE id <> 5",
    "SELECT id, g FROM t, generate_series(dt, date '2025-03-01', '3 months') AS g WHERE id <> 5",
    "SELECT id, g FROM t, generate_series(tz, timestamptz '2025-03-01 00:00+00', '1 year') AS g",
    "SELECT id, g::date AS d FROM t, generate_series(dt, dt + interval '2 months', '1 month') AS g",
    # what is asked of the row in the FROM of a subquery
    "SELECT id, ARRAY(SELECT a.x FROM t AS a WHERE a.y = t.y ORDER BY a.id DESC LIMIT 2) AS c"
    " FROM t",
    "SELECT id, ARRAY(SELECT a.x AS v FROM t AS a WHERE a.f = t.f ORDER BY v DESC) AS c FROM t",
    "SELECT id, ARRAY(SELECT a.s FROM t AS a WHERE a.y = t.y ORDER BY 1 DESC) AS c FROM t",
    "SELECT id, ARRAY(SELECT a.y + 1 FROM t AS a WHERE a.f = t.f GROUP BY a.y"
    " ORDER BY count(*) * 100 + a.y) AS c FROM t",
    "SELECT id, ARRAY(SELECT DISTINCT a.y FROM t AS a WHERE a.f = t.f ORDER BY a.y DESC LIMIT 1)"
    " AS c FROM t",
    "SELECT id, ARRAY(SELECT a.x FROM t AS a WHERE a.y = t.y UNION SELECT 4 ORDER BY 1 DESC) AS c"
    " FROM t",
    "SELECT id, (SELECT count(*) FROM t AS a, unnest(t.arr) AS e(v) WHERE a.id = e.v) AS c FROM t",
    "SELECT id, (SELECT sum(e.v * a.x) FROM t AS a CROSS JOIN LATERAL unnest(t.arr) AS e(v)"
    " WHERE a.id = e.v) AS c FROM t",
    "SELECT id, (SELECT count(*) FROM t AS a, generate_series(1, t.x) AS e(v) WHERE a.id = e.v)"
    " AS c FROM t",
    "SELECT id, (SELECT array_agg(q.x) FROM (SELECT a.x FROM t AS a WHERE a.y = t.y"
    " ORDER BY a.id DESC LIMIT 3) AS q) AS c FROM t",
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM unnest(t.sarr) AS e(v) JOIN t AS a ON a.s = e.v)",
    "SELECT id, (SELECT string_agg(q.s, ',' ORDER BY q.s) FROM (SELECT DISTINCT a.s FROM t AS a"
    " WHERE a.y = t.y) AS q) AS c FROM t",
    "SELECT id, l.y, l.n FROM t CROSS JOIN LATERAL (SELECT q.y, q.n FROM (SELECT a.y, count(*) AS n"
    " FROM t AS a WHERE a.x < t.x GROUP BY a.y) AS q ORDER BY q.n DESC, q.y LIMIT 1) AS l",
    "SELECT id, (SELECT count(c.id) FROM t AS a LEFT JOIN t AS c ON c.id = a.x AND c.y = t.y) AS c"
    " FROM t",
    "SELECT id, (SELECT sum(q.n) FROM (SELECT a.y, count(*) AS n FROM t AS a GROUP BY a.y"
    " HAVING count(*) < t.x) AS q) AS c FROM t",
    "SELECT id, (WITH q AS (SELECT a.x FROM t AS a WHERE a.y = t.y) SELECT round(avg(x), 3) FROM q)"
    " AS c FROM t",
]  # fmt: skip

REFUSED = [
    ("'{{1,2},{3,4}}'::int[]", "one dimension"), ("'{a,}'::text[]", "one dimension"),
    ("'{1}'::int[][]", "one dimension"), ("'{yes}'::bool[]", "read 'yes' differently"),
    ("'{2024-01-01}'::timestamptz[]", "differently"), ("u::text[]", "differ by row"),
    ("ARRAY[d]::text[]", "is a float"), ("coalesce(sarr, '{a}')", "no arrays as texts"),
    ("array_to_string(ARRAY[f], ',')", "a boolean"),
    ("array_to_string(ARRAY[n, x], ',')", "a decimal"),
    ("make_timestamptz(2024, 1, 1, 0, 0, 0, 'CET')", "abbreviations"),
    ("make_timestamptz(2024, 1, 1, 0, 0)", "six or seven"), ("date_add(ts, '1 day')", "an instant"),
    ("date_add(tz, interval '1 day', 'CET')", "abbreviations"), ("dt AT LOCAL", "a timestamp"),
    ("date_trunc('century', ts - ts)", "no intervals"),
    ("extract(day from justify_days(ts - dt))", "cannot store"),
    ("SELECT justify_days(ts - dt) AS c FROM t ORDER BY c LIMIT 2", "neither ordered"),
    ("SELECT id, arr FROM t ORDER BY 2 LIMIT 1", "NULLs inside of arrays"),
    ("SELECT id, arr || 1 AS a FROM t UNION ALL SELECT 1, arr FROM t ORDER BY a LIMIT 1", "NULLs"),
    ("SELECT DISTINCT ON (f) f, s::jsonb AS a FROM t ORDER BY f, a", "types and sizes"),
    ("SELECT -q.x AS x FROM (SELECT x FROM t) q, (SELECT id FROM t) r ORDER BY abs(x) LIMIT 1",
     "the output of that name"),
    ("SELECT id, rank() OVER (ORDER BY id) AS r FROM t ORDER BY 2 FETCH FIRST ROW WITH TIES",
     "it is a constant"),
    ("array_to_json(arr, true)", "breaks no lines"), ("jsonb_pretty(j)", "the keys in"),
    ("jsonb_insert(j, '{a}', '1', f)", "must be known"), ("quote_ident(x)", "needs a text"),
    ("format('%1$I', s)", "only %s, %L, %I"), ("bin || s", "is bytes"),
    ("VALUES (1), (2)", "never change"), ("(x, y) IN (VALUES (1, 2))", "NULLs inside a row"),
    *((f"jsonb_path_exists(j, '$.a ? ({condition})')", "filters by constants") for condition in (
        "!(@ == 1)", "@ == $x", "@.b.size() == 1", '@ like_regex "x"', "1 == @", "@ == 1e3",
        "@.b ? (@ > 1) > 2", "@ == 1 &&", "(@ == 1) is unknown",
    )),
    ("SELECT k FROM t, (VALUES (1), ('2')) AS v(k)", "several types"),
    ("generate_subscripts(arr, 1) + 1", "in FROM"),
    ("SELECT generate_subscripts(arr, 1), unnest(arr) FROM t", "side by side"),
    ("SELECT v::text FROM (SELECT x AS v FROM t UNION ALL SELECT n FROM t) AS q", "zeros"),
]  # fmt: skip
"""What would differ, and a part of the reason."""
