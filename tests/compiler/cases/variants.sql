--- case: a variant as a column
--- covers: Q28 a VARIANT as a column
--- spark: DuckDB has no VARIANT of Spark's
SELECT id, try_parse_json(region) AS v FROM customers;
--- before
INSERT INTO customers VALUES (1, '{"a": 1}'), (1, '{"a": 1}'), (2, '[]'), (3, NULL);
--- change
DELETE FROM customers WHERE id = 2;
UPDATE customers SET region = 'null' WHERE id = 3;
INSERT INTO customers VALUES (1, '{"a":1}');
--- delta
-- +1 | 1 | ['{"a":1}', 'OBJECT<a: BIGINT>', None]
-- -1 | 2 | ['[]', 'ARRAY<VOID>', None]
-- -1 | 3 | [None, None, None]
-- +1 | 3 | ['null', 'VOID', None]

--- case: variants that differ in the types of their elements alone
--- covers: Q28 a VARIANT as a column
--- spark: DuckDB has no VARIANT of Spark's
SELECT id, try_parse_json(region) AS v FROM customers;
--- before
INSERT INTO customers VALUES (1, '1'), (2, '[1, 1.0]');
--- change
UPDATE customers SET region = '1.0' WHERE id = 1;
UPDATE customers SET region = '[1.0, 1]' WHERE id = 2;
--- delta
-- -1 | 1 | ['1', 'BIGINT', None]
-- +1 | 1 | ['1', 'DECIMAL(1,0)', None]
-- -1 | 2 | ['[1,1]', 'ARRAY<DECIMAL(20,0)>', 'BIGINT DECIMAL(1,0)']
-- +1 | 2 | ['[1,1]', 'ARRAY<DECIMAL(20,0)>', 'DECIMAL(1,0) BIGINT']

--- case: variants of other bytes are one
--- covers: Q28 a VARIANT as a column
--- spark: DuckDB has no VARIANT of Spark's
SELECT try_parse_json(region) AS v FROM customers;
--- before
INSERT INTO customers VALUES (1, '{"a": 1, "b": 1.0}');
--- change
DELETE FROM customers;
INSERT INTO customers VALUES (1, '{"b": 1.00, "a": 1}');
--- delta

--- case: variants in lists, structs and maps
--- covers: Q28 a VARIANT inside another value
--- spark: DuckDB has no VARIANT of Spark's
SELECT id, array(v, NULL) AS l, named_struct('v', v) AS s, map('v', v) AS m FROM (SELECT id, try_parse_json(region) AS v FROM customers) AS t;
--- before
INSERT INTO customers VALUES (1, '1'), (1, '1');
--- change
INSERT INTO customers VALUES (1, '1.0');
DELETE FROM customers WHERE region = '1';
--- delta
-- -2 | 1 | [['1', 'BIGINT', None], [None, None, None]] | {'v': ['1', 'BIGINT', None]} | [{'key': 'v', 'value': ['1', 'BIGINT', None]}]
-- +1 | 1 | [['1', 'DECIMAL(1,0)', None], [None, None, None]] | {'v': ['1', 'DECIMAL(1,0)', None]} | [{'key': 'v', 'value': ['1', 'DECIMAL(1,0)', None]}]

--- case: an entry of a variant by its path, as it is
--- covers: Q28 a VARIANT as a column
--- spark: DuckDB has no VARIANT of Spark's
SELECT id, try_parse_json(region):a AS x FROM customers;
--- before
INSERT INTO customers VALUES (1, '{"a": [2]}'), (2, '{"b": 1}');
--- change
UPDATE customers SET region = '{"a": "x"}';
--- delta
-- -1 | 1 | ['[2]', 'ARRAY<BIGINT>', None]
-- +1 | 1 | ['"x"', 'STRING', None]
-- -1 | 2 | [None, None, None]
-- +1 | 2 | ['"x"', 'STRING', None]

--- case: the entries of a variant as they are
--- covers: Q28 a VARIANT as a column; Q16 variant_explode
--- spark: DuckDB has no VARIANT of Spark's
SELECT c.id, value FROM customers AS c, LATERAL variant_explode(try_parse_json(region));
--- before
INSERT INTO customers VALUES (1, '[1, 1, "x"]');
--- change
UPDATE customers SET region = '[1, "y"]';
--- delta
-- -1 | 1 | ['1', 'BIGINT', None]
-- -1 | 1 | ['"x"', 'STRING', None]
-- +1 | 1 | ['"y"', 'STRING', None]

--- case: the newest variant of a group
--- covers: Q28 a VARIANT of a group
--- spark: DuckDB has no VARIANT of Spark's
SELECT region IS NULL AS none, max_by(try_parse_json(region), id) AS v, COUNT(*) AS n FROM customers GROUP BY region IS NULL;
--- before
INSERT INTO customers VALUES (1, '1'), (2, '2'), (3, NULL);
--- change
INSERT INTO customers VALUES (3, '1.0');
DELETE FROM customers WHERE id = 1;
--- delta
-- -1 | False | ['2', 'BIGINT', None] | 2
-- +1 | False | ['1', 'DECIMAL(1,0)', None] | 2

--- case: one of the variants of a group
--- covers: Q28 a VARIANT of a group
--- spark: DuckDB has no VARIANT of Spark's
SELECT id, first(try_parse_json(region)) AS f, last(try_parse_json(region)) FILTER (WHERE id > 1) AS l FROM customers GROUP BY id;
--- before
INSERT INTO customers VALUES (1, NULL), (2, '1');
--- change
INSERT INTO customers VALUES (2, '2'), (2, '1.0'), (2, NULL);
--- delta
-- -1 | 2 | ['1', 'BIGINT', None] | ['1', 'BIGINT', None]
-- +1 | 2 | ['1', 'BIGINT', None] | ['2', 'BIGINT', None]

--- case: rows that tie but for a variant
--- covers: Q28 LIMIT over a VARIANT; Q19 a window over rows with a VARIANT
--- spark: DuckDB has no VARIANT of Spark's
SELECT id, v, lag(v) OVER (ORDER BY id) AS before FROM (SELECT id, try_parse_json(region) AS v FROM customers WHERE region IS NOT NULL) AS t LIMIT 2;
--- before
INSERT INTO customers VALUES (1, '1.0'), (2, '3');
--- change
INSERT INTO customers VALUES (1, '1');
--- delta
-- -1 | 1 | ['1', 'DECIMAL(1,0)', None] | [None, None, None]
-- +1 | 1 | ['1', 'DECIMAL(1,0)', None] | ['1', 'BIGINT', None]
-- -1 | 2 | ['3', 'BIGINT', None] | ['1', 'DECIMAL(1,0)', None]
-- +1 | 1 | ['1', 'BIGINT', None] | [None, None, None]

--- case: variants of both sides of an outer join
--- covers: Q28 a VARIANT as a column; Q6 an outer join of rows with a VARIANT
--- spark: DuckDB has no VARIANT of Spark's
SELECT o.id, c.v FROM orders AS o LEFT JOIN (SELECT id, try_parse_json(region) AS v FROM customers) AS c ON o.customer = c.id UNION ALL SELECT id, to_variant_object(map('a', amount)) FROM orders;
--- before
INSERT INTO orders VALUES (1, 1, 5);
--- change
INSERT INTO customers VALUES (1, '[]');
UPDATE orders SET amount = 6;
--- delta
-- -1 | 1 | [None, None, None]
-- +1 | 1 | ['[]', 'ARRAY<VOID>', None]
-- -1 | 1 | ['{"a":5}', 'OBJECT<a: BIGINT>', None]
-- +1 | 1 | ['{"a":6}', 'OBJECT<a: BIGINT>', None]

--- case: an entry of a map by an entry of a variant
--- covers: Q28 a path in a VARIANT, in brackets
--- spark: DuckDB has no VARIANT of Spark's
SELECT id, map('north', 1, 'south', 2)[parse_json(region):key] AS n, array(10, 20)[parse_json(region):place::INT] AS v FROM customers;
--- before
INSERT INTO customers VALUES (1, '{"key": "north", "place": 0}');
--- change
INSERT INTO customers VALUES (2, '{"key": "south", "place": 1}');
--- delta
-- +1 | 2 | 2 | 20
