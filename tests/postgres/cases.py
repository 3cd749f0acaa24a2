"""Everyday expressions and queries of PostgreSQL users. What they return is not written here:
PostgreSQL is asked."""

from __future__ import annotations

from postgres import further_cases

_OBJECTS = "id NOT IN (3, 6, 7)"
"""The rows in which j is an object."""
EXPRESSIONS = [
    # quotients and other numbers
    "n / 3", "n / 7", "m / n", "m / 7.2", "7.5 / 7.2 + n", "n / x", "x / n", "100.0 * n / m",
    "round(n / 3, 2)", "round(n / 3 * 100, 2)", "n * 1.5 / (n + 300)", "b / 7.0", "id / 7.0",
    "id::numeric / 3", "x / 2", "b / 2", "x % 2", "n % 0.3", "div(x, 2)", "trunc(n, 1)",
    "trunc(m, 3)", "trunc(x, -1)", "round(n, 1)", "round(n, -1)", "round(n)", "ceil(n)",
    "ceil(d)", "floor(d)", "trunc(d)", "ceil(d * '1e300')", "floor(-d * '1e300') / 2",
    "trunc(d * '1e300')",
    "n + '0.1'", "m > '12345678901234.123457'", "x / '2'", "n / '3'", "d * '-1e1'",
    "d::real = '0.1'", "x IN ('7', '2')", "'5' BETWEEN x AND b", "b - '1'", "x % '-3'",
    "floor(n)", "sign(n) % 0.7",
    "sign(m)", "abs(n)", "1e3 * n", "1.5e-2 + n", "(n * 2)::text", "n::text",
    "n::numeric", "n::numeric(12, 1)", "n::int", "d::int", "d::numeric(30, 2)", "scale(n)",
    "factorial(id)", "power(x, 2)", "x & 6", "x # 3",
    "x << 2", "~x", "greatest(x, y, NULL)", "least(n, x)", "width_bucket(x, 0, 10, 5)",
    "x BETWEEN SYMMETRIC 5 AND 1", "(x, y) < (3, 4)", "(x, y) >= (3, y)", "(x, y) = (7, 2)",
    "x IS DISTINCT FROM y", "to_hex(x)", "to_hex(b)", "gcd(x, y)", "gcd(b, 0)", "lcm(x, y)",
    "to_bin(x)", "to_oct(b)", "width_bucket(n, ARRAY[0.5, 1.5, 3])",
    # strings
    "j @? '$.b.d[*]'", "jsonb_path_exists(j, '$.a[last]')", "json_exists(j, '$.b.d[2]')",
    "quote_literal(u)", "quote_nullable(s)", "format('%L and %s', s, u)", "decode('00fF', 'hex')",
    "initcap(u)", "upper(s)", "length(u)", "left(s, -1)", "right(s, -2)", "left(s, x)",
    "right(s, x)", "substring(s, 0, 2)", "substring(s, -1)", "substring(s, x)",
    "substring(u from 2 for 3)", "substring(u from '[a-z]+')", "substring(u from 'o(.)')",
    "split_part(u, ',', 2)", "split_part(u, ',', -1)", "split_part(s, '', 1)", "strpos(s, 'b')",
    "lpad(s, 5, 'xy')", "rpad(s, 5, '')", "repeat(s, 2)", "reverse(s)", "translate(s, 'abc', 'xy')",
    "btrim(u, ' h')", "chr(8364)", "chr(id + 64)", "ascii(u)", "overlay(s placing 'ZZ' from 2)",
    "starts_with(s, 'a')", "concat(s, x, NULL)", "concat_ws('-', s, u, NULL)", "s || x", "md5(s)",
    "format('%s-%s%%', s, x)", "encode(bin, 'hex')", "encode(bin, 'base64')", "sha256(bin)",
    "s LIKE 'a%'", "u ILIKE 'FOO%'", "s LIKE ANY (ARRAY['a%', '%b'])",
    "s ILIKE ALL (ARRAY['a%', '%C'])", "s = ANY('{abc,Ab}')", "s SIMILAR TO '(a|%)%.%'",
    "u ~ '^[a-z]+ '", "u ~* 'FOO'", "s !~ 'b'", "regexp_replace(u, 'o', '0')",
    r"regexp_replace(u, '(o)', '<\1>')", r"regexp_replace(u, 'l+', '<\&>')",
    "regexp_replace(u, 'O', '0', 'i')", "regexp_replace(u, 'O', '0', 'gi')",
    "regexp_replace(u, '^[a-z]', '#')", "regexp_replace(u, '[a-z]$', '#')",
    "regexp_count(u, 'o')", "regexp_substr(u, '[a-z]+')", "regexp_instr(u, 'o')",
    "regexp_like(u, 'FOO', 'i')", "regexp_match(u, 'o(.)')",
    "(regexp_match(u, '([a-z])([a-z]+)'))[2]", "regexp_split_to_array(u, '[, ]')",
    "string_to_array(u, ',')", "string_to_array(s, '.', 'b')",
    "array_to_string(string_to_array(u, ','), ';', '*')",
    # dates and times
    "extract(epoch from ts)", "extract(epoch from tz)", "extract(epoch from dt)",
    "extract(epoch from ts - timestamp '2020-01-01')", "date_part('year', ts)",
    "extract(day from ts - timestamp '2020-01-01 12:00')",
    "extract(hour from ts - timestamp '2020-01-01 12:00')",
    "extract(second from ts - timestamp '2020-01-01 12:00')", "extract(isoyear from dt)",
    "extract(week from dt)", "extract(century from dt)", "extract(decade from dt)",
    "extract(milliseconds from ts)", "extract(microseconds from ts)", "extract(dow from ts)",
    "extract(isodow from ts)", "extract(julian from dt)", "extract(quarter from dt)",
    "extract(year from age(ts, timestamp '2000-02-29'))",
    "extract(month from age(ts, timestamp '2000-05-31 12:00'))", "dt - date '2024-01-01'", "dt + 1",
    "ts AT TIME ZONE 'Europe/Berlin'", "tz AT TIME ZONE 'America/New_York'",
    "ts AT TIME ZONE 'UTC'", "tz AT TIME ZONE 'UTC'",
    "ts AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin'",
    "timestamp '2024-10-27 02:30' AT TIME ZONE 'Europe/Berlin'",
    "timestamp '2024-10-27 01:30' AT TIME ZONE 'Europe/Berlin'",
    "timestamp '2024-10-26 12:30' AT TIME ZONE 'Europe/Berlin'",
    "timestamp '2024-03-31 02:30' AT TIME ZONE 'Europe/Berlin'",
    "timestamp '2024-04-07 01:45' AT TIME ZONE 'Australia/Lord_Howe'",
    "(tz AT TIME ZONE 'Europe/Berlin')::date", "timezone('Europe/Berlin', tz)",
    "date_trunc('day', tz, 'Europe/Berlin')", "date_trunc('month', dt)", "date_trunc('week', ts)",
    "date_bin('15 minutes', ts, timestamp '2001-01-01')",
    "date_bin('15 minutes', tz, timestamptz '2001-01-01 00:00+02')",
    "date_bin('1 day', ts, '2030-01-01')", "tz::text", "ts::text", "ts::date", "dt::timestamp",
    "to_char(ts, 'DD Mon YYYY')", "to_char(ts, 'FMDay, FMDD FMMonth YYYY HH12:MI AM')",
    "to_char(ts, 'Month|Day|MON|dy|Q|DDD|IW|IYYY|D|ID|WW')",
    "to_char(ts, 'yyyy-mm-dd\"T\"hh24:mi:ss.ms')", "to_char(tz, 'YYYY-MM-DD HH24:MI:SS.US')",
    "to_char(n, 'FM999,999,990.00')", "to_char(n, '999990.0')", "to_char(x, 'FM000')",
    "to_char(n, '999,999.00')", "to_char(x, '99')", "to_date('2024-02-29', 'YYYY-MM-DD')",
    "to_timestamp(x)", "ts + x * interval '1 day'", "ts + interval '1 hour' * x",
    "dt + interval '1 month'", "ts - interval '1 year 2 months 3 days'",
    "ts + interval '1 day 02:30'", "ts + '1 mon 1 day'::interval", "ts + make_interval(days => x)",
    "interval '1 mon 1 day' + dt", "isfinite(ts)", "make_date(2024, 2, id)",
    # arrays
    "arr && ARRAY[1, 7]", "arr @> ARRAY[2]", "arr <@ ARRAY[1, 2, 3, 9]", "arr @> '{2,9}'",
    "sarr && '{a,z}'", "arr || 4", "4 || arr", "arr || arr", "arr || NULL", "sarr || ARRAY['z']",
    "arr[x]", "arr[y::int]",
    "(arr[1:2])[(y / 2)::int]", "arr[1]", "arr[1:2]", "arr[2:]", "arr[:2]", "arr[0:1]",
    "array_append(arr, 4)",
    "array_prepend(0, arr)", "array_cat(arr, NULL)", "array_cat(NULL, arr)",
    "array_remove(arr, 2)", "array_replace(arr, 2, 0)", "array_positions(arr, 2)",
    "array_position(arr, 2)", "array_reverse(arr)", "array_sort(arr)", "array_upper(arr, 1)",
    "array_length(arr, 1)", "cardinality(arr)", "x = ANY(arr)", "x <> ALL(arr)", "x < ANY (arr)",
    "array_remove(arr, NULLIF(x, 2))", "array_position(arr, NULLIF(x, 2))", "arr[1:y]", "arr[y:]",
    "string_to_array(s, '')", "substring(s, y, 2)", "timestamptz '2024-03-31 00:30:00+00'",
    "x >= ALL (arr)", "x > ALL (ARRAY[1, 2])", "array_to_string(arr, ',')",
    # JSON
    "j ->> 'k'", "j -> 'b' ->> 'c'", "j #>> '{b,c}'", "j -> 2 ->> 'x'", "j ->> 1", "j ? 'a'",
    "j @> '{\"a\": 1}'", "j @> '{\"b\": {\"c\": \"x y\"}, \"k\": \"v\"}'", "j @> '{\"b\": null}'",
    "j ?| ARRAY['e', 'k']", "j ?& ARRAY['a', 'b']", "jsonb_typeof(j)", "jsonb_typeof(j -> 'b')",
    "(j ->> 'a')::numeric", "(j ->> 'a')::numeric(10, 1)", "upper(j -> 'b' ->> 'c')",
    "jsonb_extract_path_text(j, 'b', 'c')", "j ->> 'k' IS NULL",
    "j -> 'b' = '{\"d\": [1, 2.5, \"z\"], \"c\": \"x y\"}'", "j -> 'a' = '1.0'",
    "(j -> 'a') IS DISTINCT FROM '1.0'", "(j -> 'a') IS NOT DISTINCT FROM '2.5'",
    "j -> 'k' IN ('\"v\"', '\"w\"')", "j -> 'k' NOT IN ('\"v\"', '\"w\"')",
    "j::jsonb = '{\"k\":\"w\"}'", "j::jsonb <> '{\"k\":\"w\"}'",
    "jsonb_build_object('b', 1, 'a', 2) = jsonb_build_object('a', 2.0, 'b', 1)",
    f"CASE WHEN {_OBJECTS} THEN (j - 'a') ->> 'k' END",
    # parts of times in quotients
    "extract(epoch from ts - timestamp '2020-01-01') / 3600", "extract(epoch from ts) / 60",
    "extract(epoch from tz - timestamptz '2020-01-01 00:00+00') / 86400.0",
    "extract(epoch from dt) / 7", "extract(second from ts) / 7",
    "extract(milliseconds from ts) / 7", "extract(microseconds from ts) / 7",
    "extract(year from ts) / 7", "extract(month from dt) * 1.5 / 7", "n / extract(day from dt)",
    "make_timestamp(2024, 2, 29, 10, 30, 45.5)", "make_timestamp(2024, 2, id, 10, x + 7, 0)",
    # casts
    *(f"CASE WHEN id IN (1, 5) THEN (j -> 'a')::{type_} END" for type_ in (
        "int", "numeric", "numeric(10, 1)", "double precision",
    )),
    "CASE WHEN id = 2 THEN (j -> 't')::boolean END", "CASE WHEN id = 2 THEN (j -> 'b')::int END",
    "encode(sha256(s::bytea), 'hex')", "ts + (x || ' days')::interval",
    "ts - (x || ' hour')::interval", "ts + interval '1 month - 1 day'",
    # rows, ranges and periods
    "(x, y) IS DISTINCT FROM (7, 2)", "(x, y) IS NOT DISTINCT FROM (NULL, NULL)",
    "ROW(x, y) = ROW(7, 2)", "ROW(x, y) < ROW(7, 3)", "ROW(x, y) IN ((7, 2), (3, 7))",
    "int4range(1, 5) @> x", "int4range(1, 5, '(]') @> x", "int4range(NULL, 5) @> x",
    "x <@ int4range(1, NULL)", "numrange(0, 2.5, '(]') @> n",
    "daterange('2024-01-01'::date, '2024-02-29'::date, '[]') @> dt",
    "tsrange(ts, ts + interval '1 day') @> timestamp '2024-01-31 12:00'",
    "tstzrange(tz, NULL) @> timestamptz '2024-01-31 12:00+00'",
    "int4range(1, 3, '()') && int4range(2, 4, '()')", "int4range(2, 2) && int4range(0, 5)",
    "int4range(0, y, '()') && int4range(2, 4, '[]')",
    "numrange(0, n + 10, '[)') && numrange(11.25, 12, '[)')",
    "numrange(0, n + 10, '[]') && numrange(11.25, 12, '[)')",
    "tsrange(ts, ts + interval '1 month') && tsrange(timestamp '2024-02-10', NULL)",
    "(ts, ts + interval '1 day') OVERLAPS (timestamp '2024-01-31', timestamp '2024-02-01')",
    "(timestamp '2024-02-01', ts) OVERLAPS (timestamp '2024-02-01', timestamp '2024-02-01')",
    "(dt, NULL::date) OVERLAPS (date '2024-01-31', date '2024-02-01')",
    "(dt, dt) OVERLAPS (date '2024-01-31', date '2024-02-01')",
    "(date '2024-03-01', dt) OVERLAPS (date '2024-02-29', NULL::date)",
    "(NULL::date, date '2024-03-01') OVERLAPS (dt, date '2024-02-29')",
    "'{A0EEBC99-9C0B4EF8BB6D-6BB9BD380A11}'::uuid", "convert_to(s, 'UTF8')",
    "convert_from(convert_to(u, 'UTF8'), 'UTF8')",
]  # fmt: skip
"""Equal to the last character and the last digit."""

REPRESENTED = [
    "m / nullif(m, 0)",
    # times of day and ages, as texts
    "ts::time", "(tz::time)::text", "ts::time BETWEEN '10:00' AND '12:30:00'",
    "'12:00' <= ts::time", "ts::time IN ('12:00', '23:59:59', '02:30:00.0')",
    "ts::time = '00:00'", "ts::time IS DISTINCT FROM '12:00:00'", "time '09:00' < ts::time",
    "extract(hour from ts::time)", "extract(epoch from ts::time)", "dt + ts::time",
    "coalesce(ts::time, time '09:00')", "ts::time BETWEEN SYMMETRIC '12:30' AND '10:00'",
    "age(ts, timestamp '2020-02-29 12:00:00')", "age(timestamp '2020-02-29 12:00:00', ts)",
    "age(tz, timestamptz '2023-12-31 23:59:59.5+00')", "age(dt, date '2024-03-01')",
    "age(ts, ts)", "age(ts, timestamp '2024-01-31 00:00')::text || '!'",
    "justify_hours(ts - timestamp '2024-01-01')",
    # paths of JSON, and subscripts
    "json_value(j, '$.a')", "json_value(j, '$.t')", "json_value(j, '$[*]')",
    "json_value(j, '$[last].x')", "json_query(j, '$.b')", "json_query(j, '$[2]')",
    "jsonb_path_query_first(j, '$.b.d[*]')", "jsonb_path_query_array(j, '$[*]')",
    "jsonb_path_query_first(j, '$.b') ->> 'c'", "j['b']['d'][1]", "(j -> 'b')['c']",
    # letters in patterns: of an ASCII text, since the server's database has no others
    "s ~ '\\w'", "s ~ '\\yabc\\y'", "s ~ '^[[:upper:]][[:lower:]]'", "s ~ '[^[:alpha:].%_]'",
    "regexp_replace(s, '\\W+', '-', 'g')", "(regexp_match(s, '(\\w+)'))[1]",
    "ts - timestamp '2020-01-01'", "tz - timestamptz '2024-01-01 00:00+00'", "ts - dt",
    "greatest(ts - dt, dt - ts)", "(ts - dt)::text", "CASE WHEN x > 5 THEN ts - dt END",
    "avg(x) OVER (PARTITION BY f)", "log(100)",
    "log(1000::double precision)", "power(n, 2)", "sqrt(abs(n))", "ln(n + 10)", "exp(1.0)",
    "cbrt(x)", "j ->> 'a'", "j -> 'b'", "j -> 'b' -> 'd'", "jsonb_build_object('a', x, 'b', s)",
    "jsonb_build_array(x, s, NULL)", "to_jsonb(s)", "(n / 3) / 7", "d::numeric(38, 12)",
    *(f"CASE WHEN {_OBJECTS} THEN {sql} END" for sql in (
        "j - 'a'", "j - ARRAY['a', 'b']", "j - 'a' - 'b'", "j #- '{b,c}'", "j #- '{b,d,-1}'",
        "jsonb_set(j, '{a}', '{\"new\": true}')", "jsonb_set(j, '{z}', '1')",
        "jsonb_set(j, '{z}', '1', false)", "jsonb_set(j, '{b,c}', to_jsonb(x))",
        "jsonb_set(j, '{b,d,1}', to_jsonb(s))", "jsonb_set(j, '{b,d,7}', '\"last\"')",
        "jsonb_set(j, '{b,d,-7}', '\"first\"')", "jsonb_set(j, '{b,d,-1}', 'null')",
        "jsonb_set(j, '{q,c}', '1')", "jsonb_set(jsonb_set(j, '{a}', '1'), '{b}', '2')",
    )),
    "CASE WHEN id = 3 THEN j - 'a' END", "CASE WHEN id = 3 THEN j - 0 END",
    "CASE WHEN id = 3 THEN j - -1 END", "CASE WHEN id = 3 THEN j - 5 END",
    "CASE WHEN id = 3 THEN j #- '{2,x}' END",
    "CASE WHEN id = 3 THEN jsonb_set(j, '{2,x}', '[]') END",
    "j::jsonb || '{\"a\": 1, \"k\": null}'", "'{\"a\": 1, \"k\": null}'::jsonb || j::jsonb",
    "j::jsonb || j::jsonb", "j::jsonb || '[1, 2]'", "j::jsonb || '\"q\"'",
    "(j -> 'b') || '{\"q\": [1]}'", "j::jsonb", "j::json", "to_jsonb(ts)", "to_jsonb(d)",
    "to_jsonb(n)", "to_json(d)", "to_jsonb(arr)", "to_jsonb(sarr)",
    "json_build_object('a', ts, 'b', d, 'c', arr, 'd', tz, 'e', sarr, 'f', dt)",
    "jsonb_build_object('a', d * 1e9, 'b', d / 1e9, 'c', d * 1e20, 'd', 'NaN'::float8,"
    " 'e', '-Infinity'::float8, 'f', 0::float8)",
]  # fmt: skip
"""Equal but for the digits of a float or of a long decimal, or the spaces and keys of JSON."""

_A = "(SELECT x, id FROM t WHERE x > 3) AS a"
_B = "(SELECT y, id FROM t WHERE y < 5) AS b"
_C = "(SELECT s, id FROM t) AS c"
QUERIES = [
    "SELECT id, w[1] AS a, w[2] AS b FROM t, regexp_matches(u, '([aeiou])(.)', 'g') AS w",
    "SELECT id, w[1] AS a FROM t LEFT JOIN LATERAL regexp_matches(u, 'o') AS w ON true",
    "SELECT f, avg(x) AS a, avg(n) AS b, avg(m) AS c, avg(b) AS d, sum(n) / count(*) AS e,"
    " round(avg(m), 3) AS g FROM t GROUP BY f",
    "SELECT f, avg(n) AS a, avg(DISTINCT y) AS b, avg(n) FILTER (WHERE x > 0) AS c,"
    " 100.0 * count(x) / count(*) AS d FROM t GROUP BY f",
    "SELECT id, avg(n) OVER (PARTITION BY f) AS a,"
    " avg(x) OVER (ORDER BY id ROWS 1 PRECEDING) AS b FROM t",
    "SELECT count(*), sum(x) + 1, max(x)::text, coalesce(min(s), 'q') FROM t",
    "SELECT DISTINCT ON (f) * FROM (SELECT f, id, n, s FROM t) AS q ORDER BY f, id DESC",
    "SELECT DISTINCT ON (f) f, id FROM t ORDER BY f, id DESC LIMIT 2",
    "SELECT id, y FROM t ORDER BY y FETCH FIRST 2 ROWS WITH TIES",
    "SELECT id, -y AS y FROM t ORDER BY y FETCH FIRST 2 ROWS WITH TIES",
    "SELECT f, count(*) AS n FROM t GROUP BY f ORDER BY 2 DESC, 1 FETCH FIRST 1 ROWS WITH TIES",
    "SELECT * FROM (SELECT f, id FROM t ORDER BY 2 DESC FETCH FIRST 3 ROWS WITH TIES) AS q",
    "SELECT f AS g FROM t GROUP BY g ORDER BY max(id) DESC, f FETCH FIRST ROW WITH TIES",
    "SELECT DISTINCT ON (f) f, y, count(*) AS c FROM t GROUP BY f, y"
    " ORDER BY f, count(*), y LIMIT 2",
    "SELECT DISTINCT ON (f) f, id FROM t ORDER BY 1, 2 DESC",
    "SELECT DISTINCT ON (1) f, -id AS id FROM t ORDER BY 1, id",
    "SELECT DISTINCT ON (y) -y AS y, x, id FROM t ORDER BY y, x, 3 DESC",
    "SELECT DISTINCT ON (y) -y AS y, id FROM t ORDER BY y DESC, 2 LIMIT 2",
    "SELECT DISTINCT upper(s) FROM t ORDER BY upper(s) DESC LIMIT 3",
    "SELECT DISTINCT f, count(*) FROM t GROUP BY f ORDER BY count(*), f LIMIT 2",
    "SELECT id, -x AS x FROM t WHERE x IS NOT NULL ORDER BY x + 0, id LIMIT 2",
    "SELECT y AS id, id AS y FROM t ORDER BY (y * 2) DESC, (2) LIMIT 3",
    "SELECT a.id, -b.x AS x FROM t AS a JOIN t AS b USING (id) ORDER BY abs(b.x), 1 LIMIT 2",
    # joins by names
    f"SELECT a.*, b.y FROM {_A} LEFT JOIN {_B} USING (id)",
    f"SELECT b.*, a.x FROM {_A} NATURAL RIGHT JOIN {_B}",
    f"SELECT id, a.x, b.y, c.s FROM {_A} FULL JOIN {_B} USING (id) LEFT JOIN {_C} USING (id)",
    f"SELECT id, count(*) AS n, max(c.s) AS s FROM {_A} RIGHT JOIN {_B} USING (id)"
    f" LEFT JOIN {_C} USING (id) GROUP BY id",
    "SELECT id, f FROM t UNION ALL SELECT x, f FROM t ORDER BY 1 DESC NULLS LAST, 2 LIMIT 3",
    "SELECT y, count(*) AS c FROM t GROUP BY (1) ORDER BY 2 DESC, (1) LIMIT 2",
    "SELECT y, f, count(*) AS c FROM t GROUP BY ROLLUP (1, 2) HAVING count(*) > 1",
    "SELECT max(n) AS n, max(r) AS r, max(t) AS t FROM (SELECT row_number() OVER () AS n,"
    " rank() OVER (PARTITION BY f) AS r, ntile(3) OVER w AS t FROM t WINDOW w AS ()) AS q",
    "SELECT count(*) AS c FROM t GROUP BY ()",
    "SELECT f, y + 1 AS z, grouping(f, y + 1) AS g, count(*) AS c, sum(x) AS s FROM t WHERE id < 0"
    " GROUP BY ROLLUP (1, y + 1) HAVING f IS NULL ORDER BY 1",
    "SELECT count(*) AS c FROM t WHERE id < 0 GROUP BY GROUPING SETS ((), (), (f))",
    "SELECT f, y, grouping(f, y) AS g, count(*) AS c FROM t GROUP BY CUBE (f, y)",
    "SELECT f, array_agg(x ORDER BY id DESC) AS a, array_agg(DISTINCT y) AS b,"
    " array_agg(s ORDER BY x, id) AS c FROM t GROUP BY f",
    "SELECT f, array_agg(x ORDER BY id) FILTER (WHERE x > 5) AS a FROM t GROUP BY f",
    "SELECT array_agg(x ORDER BY id) AS a FROM t WHERE id > 1000",
    "SELECT every(f) AS a, bool_or(f) AS b, every(x > -10) AS c FROM t",
    "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY n) AS a,"
    " percentile_disc(0.3) WITHIN GROUP (ORDER BY b DESC) AS b,"
    " percentile_disc(0.5) WITHIN GROUP (ORDER BY dt) AS c FROM t",
    "SELECT id, g FROM t, generate_series(1, x) AS g",
    "SELECT t.id, g FROM t, generate_series('2024-01-31'::date, '2024-02-03'::date, '1 day') AS g"
    " WHERE g::date > dt",
    "SELECT g.m, count(t.id) AS c FROM generate_series(timestamp '2024-01-01',"
    " timestamp '2024-06-01', interval '1 month') AS g(m) LEFT JOIN t"
    " ON date_trunc('month', t.ts) = g.m GROUP BY g.m",
    "SELECT id, e FROM t, string_to_table(u, ',') AS e",
    "SELECT id, e.v, e.o FROM t LEFT JOIN LATERAL unnest(sarr) WITH ORDINALITY AS e(v, o) ON TRUE",
    "SELECT q.v / 2 AS c FROM (SELECT x AS v FROM t UNION ALL SELECT n FROM t) AS q",
    "SELECT f, string_agg(s, ',' ORDER BY id) AS a, string_agg(DISTINCT s, '-') AS b,"
    " bit_and(x) AS c FROM t GROUP BY f",
    "SELECT date_trunc('month', ts) AS m, round(sum(n) / nullif(sum(x), 0), 4) AS q FROM t"
    " GROUP BY 1",
    "SELECT a.id, b.id AS other FROM t AS a JOIN t AS b ON (a.x, a.id) < (b.x, b.id)",
    "SELECT j ->> 'k' AS k, count(*) FROM t GROUP BY 1",
    "SELECT id, x IN (SELECT a.y FROM t AS a) AS a, x <> ALL (SELECT a.y FROM t AS a) AS b,"
    " x = ANY (SELECT a.y FROM t AS a WHERE a.id < 3) AS c FROM t",
    "SELECT id, k FROM t, jsonb_object_keys(j) AS k WHERE id IN (1, 2, 8)",
    "SELECT id, lag(x) OVER w AS p, sum(x) OVER (w ROWS UNBOUNDED PRECEDING) AS r,"
    " sum(x) OVER (v ROWS 1 PRECEDING) AS q FROM t"
    " WINDOW w AS (PARTITION BY f ORDER BY id), v AS (w)",
    "SELECT f, count(DISTINCT (y, s)) AS d FROM t GROUP BY f",
    "SELECT key, count(*) AS n FROM t, jsonb_each_text(CASE WHEN id IN (1, 8) THEN j ELSE '{}' END)"
    " GROUP BY key",
    "SELECT id, e.k FROM t CROSS JOIN LATERAL jsonb_each_text(j) AS e(k, v)"
    f" WHERE {_OBJECTS} AND e.v > '2'",
    "SELECT id, e ->> 'x' AS x FROM t, jsonb_array_elements(j) AS e WHERE id = 3",
    "SELECT id, e.o FROM t LEFT JOIN LATERAL jsonb_object_keys(CASE WHEN id IN (1, 8) THEN j"
    " ELSE '{}' END) AS e(o) ON TRUE",
    "SELECT id, ARRAY(SELECT a.x FROM t AS a WHERE a.y = t.y ORDER BY a.id) AS c FROM t",
    "SELECT id, ARRAY(SELECT DISTINCT a.y FROM t AS a WHERE a.f = t.f ORDER BY a.y) AS c FROM t",
    "SELECT ARRAY(SELECT a.x FROM t AS a WHERE a.id > 100) AS c",
    "SELECT id, e.a, e.b FROM t, unnest(arr, sarr) AS e(a, b)",
    "SELECT id, g / 2 AS h FROM t, generate_subscripts(arr, 1) AS g",
    "SELECT f, round(extract(epoch from avg(ts - timestamp '2020-01-01')) / 86400, 2) AS a,"
    " extract(epoch from sum(ts - timestamp '2020-01-01')) AS b FROM t GROUP BY f",
    "SELECT f, avg(extract(epoch from ts)) AS a, avg(extract(year from ts)) AS c FROM t GROUP BY f",
    "SELECT f, round(sum(n) / (SELECT sum(n) FROM t), 3) AS share FROM t GROUP BY f",
    "WITH s AS (SELECT f, sum(n) AS total FROM t GROUP BY f)"
    " SELECT f, round(100 * total / (SELECT sum(n) FROM t), 2) AS share FROM s",
]

REPRESENTED_QUERIES = [
    "SELECT id, (SELECT json_agg(q) FROM (SELECT a.x, a.s FROM t AS a WHERE a.y = t.y"
    " ORDER BY a.id DESC LIMIT 2) AS q) AS c FROM t",
    "SELECT f, (SELECT jsonb_agg(q.s) FILTER (WHERE q.s <> '') FROM (SELECT DISTINCT a.s FROM t"
    " AS a WHERE a.f = t.f ORDER BY a.s DESC) AS q) AS c FROM t",
    "SELECT id, corr(x, y) AS c, corr(x, 2) AS f FROM t GROUP BY id",
    "SELECT f, corr(x, 2) AS a, corr(x, y) FILTER (WHERE x > 1) AS b FROM t GROUP BY f",
    "SELECT id, corr(d, 1) OVER (PARTITION BY f) AS c FROM t",
    "SELECT f, sum(ts - timestamp '2024-01-31 03:00') AS s, avg(ts - timestamp '2024-01-31 03:00')"
    " AS a FROM t GROUP BY f",
    "SELECT f, avg(timestamptz '2024-01-31 03:00+00' - tz) FILTER (WHERE id < 4) AS a FROM t"
    " GROUP BY f",
    "SELECT ts::time AS c, count(*) AS n FROM t GROUP BY 1",
    "SELECT f, min(ts::time) AS a, max(tz::time) AS b FROM t GROUP BY f",
    "WITH q AS (SELECT id, ts::time AS c FROM t) SELECT a.id, b.id AS other FROM q AS a"
    " JOIN q AS b ON a.c = b.c WHERE a.c > '10:00'",
    f"SELECT t.id, r.a, r.k FROM t, jsonb_to_record(t.j) AS r(a text, k text) WHERE {_OBJECTS}",
    "SELECT t.id, r.sku, r.qty + 1 AS n, r.price * 2 AS p, r.sub ->> 'z' AS z, r.ok, r.day FROM t,"
    """ jsonb_to_recordset('[{"sku": "a", "qty": 2, "price": 1.50, "sub": {"z": "q"}, "ok": true,"""
    """ "day": "2024-02-03"}, {"sku": null, "sub": null}, {"sub": [1, 2]}]'::jsonb)"""
    " AS r(sku text, qty int, price numeric(8, 2), sub jsonb, ok boolean, day date)",
    "SELECT id, w[1] AS c FROM t, regexp_matches(s, '(\\w)', 'g') AS w",
    "SELECT id, ts - dt AS c FROM t ORDER BY c DESC, id LIMIT 3",
    "SELECT id, ts - timestamp '2020-01-01' AS c FROM t ORDER BY 2, 1 LIMIT 2",
    "SELECT f, max(ts) - min(ts) AS a, min(ts - dt) AS b FROM t GROUP BY f",
    "SELECT ts - dt AS c, count(*) AS n FROM t GROUP BY 1",
    "SELECT DISTINCT ts - dt AS c FROM t",
    "SELECT row_to_json(t) AS c FROM t",
    "SELECT f, jsonb_agg(ARRAY[dt] ORDER BY id) AS c FROM t GROUP BY f",
    "SELECT to_jsonb(q) AS c FROM (SELECT id, d, arr FROM t) AS q",
    "SELECT f, jsonb_agg(q ORDER BY q.id) AS c FROM (SELECT id, f, s, ts FROM t) AS q GROUP BY f",
    "SELECT t.id, (SELECT jsonb_agg(q ORDER BY q.id) FROM (SELECT a.id, a.x FROM t AS a"
    " WHERE a.y = t.y) AS q) AS c FROM t",
    f"SELECT id, e.key, e.value FROM t, jsonb_each(j) AS e WHERE {_OBJECTS}",
    "SELECT f, jsonb_object_agg(id::text, ts) AS a, jsonb_object_agg(id::text, d)"
    " FILTER (WHERE x > 2) AS b FROM t WHERE id < 9 GROUP BY f",
    "SELECT id, e FROM t, jsonb_array_elements_text(j -> 'b' -> 'd') AS e WHERE id = 1",
    "SELECT f, stddev(x) AS a, variance(n) AS b, corr(x, y) AS c, avg(d) AS e FROM t GROUP BY f",
    "SELECT jsonb_agg(x ORDER BY id) AS a, json_agg(s ORDER BY id) AS b FROM t",
    "SELECT f, jsonb_agg(ts ORDER BY id) AS a, jsonb_agg(d ORDER BY id) AS b,"
    " jsonb_agg(tz ORDER BY id) AS c FROM t GROUP BY f",
    "SELECT j -> 'a' AS a, count(*) AS n FROM t GROUP BY 1",
    "SELECT sum(n / 3) AS a, sum(n / 3) / 7 AS b FROM t",
    "SELECT f, percentile_cont(0.5) WITHIN GROUP (ORDER BY n) AS a FROM t GROUP BY f",
]

EXPRESSIONS += further_cases.EXPRESSIONS
REPRESENTED += further_cases.REPRESENTED
QUERIES += further_cases.QUERIES
EVERYDAY = EXPRESSIONS[::16]
"""The part that `.ci/run` runs on Spark."""
EVERYDAY_QUERIES = [QUERIES[i] for i in (1, 5, 17)]
