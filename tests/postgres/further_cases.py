"""Expressions of JSON that are made from others, and what is refused."""

from __future__ import annotations

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
    ("substring(u from 'l(o)?')", "not NULL"), ("substring(u from '(h)?e')", "not NULL"),
    ("substring(u, 'e(l)*')", "not NULL"), ("regexp_match(u, 'l(o)?')", "not NULL"),
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
