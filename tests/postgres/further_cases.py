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
]  # fmt: skip

REPRESENTED: list[str] = [
]  # fmt: skip

QUERIES = [
    "SELECT f, (array_agg(x ORDER BY id))::text[] AS a,"
    " coalesce(array_agg(dt ORDER BY id) FILTER (WHERE x > 5), '{}') AS b FROM t GROUP BY f",
    "SELECT ARRAY(SELECT a.x FROM t AS a ORDER BY a.id)::text[] AS c",
    "SELECT id, e FROM t, unnest(coalesce(sarr, '{}')) AS e",
    "SELECT id, e FROM t, unnest('{1,2}'::int[]) AS e WHERE e <> x",
]  # fmt: skip

REFUSED = [
    ("'{{1,2},{3,4}}'::int[]", "one dimension"), ("'{a,}'::text[]", "one dimension"),
    ("'{1}'::int[][]", "one dimension"), ("'{yes}'::bool[]", "read 'yes' differently"),
    ("'{2024-01-01}'::timestamptz[]", "differently"), ("u::text[]", "differ by row"),
    ("ARRAY[d]::text[]", "is a float"), ("coalesce(sarr, '{a}')", "no arrays as texts"),
    ("array_to_string(ARRAY[f], ',')", "a boolean"),
    ("array_to_string(ARRAY[n, x], ',')", "a decimal"),
]  # fmt: skip
"""What would differ, and a part of the reason."""
