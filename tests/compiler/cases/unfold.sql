--- case: an array gains one element and loses another
--- covers: Q16 LATERAL VIEW explode
SELECT id, tag FROM visits LATERAL VIEW explode(tags) t AS tag;
--- before
INSERT INTO visits (id, tags) VALUES (1, array(1, 2)), (2, array(2));
--- change
UPDATE visits SET tags = array(2, 3) WHERE id = 1;
--- delta
-- -1 | 1 | 1
-- +1 | 1 | 3

--- case: an element that is there twice is two rows
--- covers: Q16 LATERAL VIEW explode; Q26 copies in an array
SELECT tag FROM visits LATERAL VIEW explode(tags) t AS tag;
--- before
INSERT INTO visits (id, tags) VALUES (1, array(2, 2)), (2, array(2, NULL)), (2, array(2, NULL));
--- change
DELETE FROM visits WHERE id = 2;
--- delta
-- -2 | 2
-- -2 | NULL

--- case: an array becomes empty, and OUTER keeps its row
--- covers: Q16 LATERAL VIEW OUTER explode
--- spark: what sqlglot writes for DuckDB does not pad
SELECT id, tag FROM visits LATERAL VIEW OUTER explode(tags) t AS tag;
--- before
INSERT INTO visits (id, tags) VALUES (1, array(1)), (2, NULL), (3, array(3));
--- change
UPDATE visits SET tags = NULL WHERE id = 1;
UPDATE visits SET tags = array(4) WHERE id = 2;
--- delta
-- -1 | 1 | 1
-- +1 | 1 | NULL
-- +1 | 2 | 4
-- -1 | 2 | NULL

--- case: elements with their places
--- covers: Q16 posexplode
SELECT id, pos, tag FROM visits LATERAL VIEW posexplode(tags) t AS pos, tag;
--- before
INSERT INTO visits (id, tags) VALUES (1, array(5, 6, 7));
--- change
UPDATE visits SET tags = array(5, 7);
--- delta
-- -1 | 1 | 1 | 6
-- +1 | 1 | 1 | 7
-- -1 | 1 | 2 | 7

--- case: LATERAL explode as a relation
--- covers: Q16 LATERAL explode(…) in FROM
--- spark: sqlglot writes something that DuckDB cannot read
SELECT v.id, t.tag FROM visits AS v, LATERAL explode(v.tags) AS t(tag);
--- before
INSERT INTO visits (id, tags) VALUES (1, array(1, 2));
--- change
INSERT INTO visits (id, tags) VALUES (1, array(2));
DELETE FROM visits WHERE size(tags) = 2;
--- delta
-- -1 | 1 | 1

--- case: LEFT JOIN LATERAL explode pads
--- covers: Q16 LATERAL explode(…) in FROM
--- spark: DuckDB has no LEFT JOIN LATERAL on unnest with that condition
SELECT v.id, t.tag FROM visits AS v LEFT JOIN LATERAL explode(v.tags) AS t(tag) ON true;
--- before
INSERT INTO visits (id, tags) VALUES (1, array(1, 2)), (2, NULL);
--- change
UPDATE visits SET tags = NULL WHERE id = 1;
--- delta
-- -1 | 1 | 1
-- -1 | 1 | 2
-- +1 | 1 | NULL

--- case: LEFT JOIN LATERAL explode pads the rows of which no element matches
--- covers: Q16 LATERAL explode(…) in FROM, LEFT JOIN on a condition
--- spark: DuckDB has no LEFT JOIN LATERAL on unnest with that condition
SELECT v.id, t.tag FROM visits AS v LEFT JOIN LATERAL explode(v.tags) AS t(tag) ON t.tag > 1 WHERE v.id < 9;
--- before
INSERT INTO visits (id, tags) VALUES (1, array(1, 2)), (2, array(1, 1)), (3, NULL), (9, NULL);
--- change
UPDATE visits SET tags = array(1) WHERE id = 1;
UPDATE visits SET tags = array(3, 1, 4) WHERE id = 3;
DELETE FROM visits WHERE id = 2;
--- delta
-- -1 | 1 | 2
-- -1 | 2 | NULL
-- -1 | 3 | NULL
-- +1 | 1 | NULL
-- +1 | 3 | 3
-- +1 | 3 | 4

--- case: LEFT JOIN LATERAL explode on a condition of the row
--- covers: Q16 LATERAL explode(…) in FROM, LEFT JOIN on a condition
--- spark: DuckDB has no LEFT JOIN LATERAL on unnest with that condition
SELECT v.id, t.tag, 10 / v.id AS q FROM visits AS v LEFT JOIN LATERAL explode(v.tags) AS t(tag) ON v.id > 1 AND 12 / t.tag > 1;
--- before
INSERT INTO visits (id, tags) VALUES (1, array(1, 2)), (2, array(4, 12));
--- change
UPDATE visits SET id = id + 1;
--- delta
-- -1 | 1 | NULL | 10.0
-- -1 | 2 | 4 | 5.0
-- +1 | 2 | 1 | 5.0
-- +1 | 2 | 2 | 5.0
-- +1 | 3 | 4 | 3.333333333

--- case: rows of structs
--- covers: Q16 inline
--- spark: DuckDB has no function that makes columns of structs
SELECT o.id, x, y FROM orders AS o LATERAL VIEW inline(array(named_struct('k', o.id, 'v', 'id'), named_struct('k', o.amount, 'v', 'amount'))) t AS x, y;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
UPDATE orders SET amount = 6;
--- delta
-- -1 | 10 | 5 | amount
-- +1 | 10 | 6 | amount

--- case: columns into rows with stack
--- covers: Q16 stack
--- spark: DuckDB has no STACK
SELECT id, name, value FROM orders LATERAL VIEW stack(2, 'customer', customer, 'amount', amount) t AS name, value;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
UPDATE orders SET customer = 2;
--- delta
-- -1 | 10 | customer | 1
-- +1 | 10 | customer | 2

--- case: fields of a JSON text
--- covers: Q16 json_tuple
--- spark: DuckDB has no JSON_TUPLE
SELECT id, a, b FROM customers LATERAL VIEW json_tuple(region, 'a', 'b') t AS a, b;
--- before
INSERT INTO customers VALUES (1, '{"a": 1, "b": "x"}');
--- change
UPDATE customers SET region = '{"a": 2}';
--- delta
-- -1 | 1 | 1 | x
-- +1 | 1 | 2 | NULL

--- case: entries of a JSON object
--- covers: Q16 JSON array and object expansion
--- spark: DuckDB has no FROM_JSON of Spark's kind
SELECT id, name, value FROM customers LATERAL VIEW explode(from_json(region, 'map<string,int>')) t AS name, value;
--- before
INSERT INTO customers VALUES (1, '{"a": 1, "b": 2}'), (2, NULL);
--- change
UPDATE customers SET region = '{"a": 1, "b": 3}' WHERE id = 1;
--- delta
-- -1 | 1 | b | 2
-- +1 | 1 | b | 3

--- case: entries of a variant
--- covers: Q16 variant_explode
--- spark: DuckDB has no VARIANT_EXPLODE
SELECT id, t.pos, try_variant_get(t.value, '$', 'INT') AS value FROM customers, LATERAL variant_explode(try_parse_json(region)) AS t(pos, key, value);
--- before
INSERT INTO customers VALUES (1, '[4, 5]');
--- change
UPDATE customers SET region = '[4, 6, 7]';
--- delta
-- -1 | 1 | 1 | 5
-- +1 | 1 | 1 | 6
-- +1 | 1 | 2 | 7

--- case: entries of a variant under their own names
--- covers: Q16 variant_explode
--- spark: DuckDB has no VARIANT_EXPLODE
SELECT customers.id, t.key, TRY_CAST(t.value AS INT) AS value, more.pos FROM customers, LATERAL variant_explode(try_parse_json(region)) AS t LEFT JOIN LATERAL variant_explode_outer(try_parse_json(region)) AS more;
--- before
INSERT INTO customers VALUES (1, '{"a": 1}');
--- change
UPDATE customers SET region = '{"a": 2}';
--- delta
-- -1 | 1 | a | 1 | 0
-- +1 | 1 | a | 2 | 0

--- case: a row for every number up to a column
--- covers: Q16 explode of a sequence
SELECT id, n FROM orders LATERAL VIEW explode(sequence(1, amount)) t AS n;
--- before
INSERT INTO orders VALUES (10, 1, 2);
--- change
UPDATE orders SET amount = 4;
--- delta
-- +1 | 10 | 3
-- +1 | 10 | 4

--- case: groups above the elements
--- covers: Q16 groups over elements
SELECT tag, COUNT(*) AS n, MAX(id) AS last FROM visits LATERAL VIEW explode(tags) t AS tag GROUP BY tag;
--- before
INSERT INTO visits (id, tags) VALUES (1, array(1, 2)), (2, array(2, 2));
--- change
DELETE FROM visits WHERE id = 2;
INSERT INTO visits (id, tags) VALUES (3, array(3, 1));
--- delta
-- -1 | 1 | 1 | 1
-- +1 | 1 | 2 | 3
-- +1 | 2 | 1 | 1
-- -1 | 2 | 3 | 2
-- +1 | 3 | 1 | 3

--- case: elements joined to a table that moves too
--- covers: Q16 a join with elements; Q3 a key changes and its partner goes
SELECT v.id, c.region FROM (SELECT id, tag FROM visits LATERAL VIEW explode(tags) t AS tag) AS v JOIN customers AS c ON c.id = v.tag;
--- before
INSERT INTO visits (id, tags) VALUES (1, array(1, 2));
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
--- change
UPDATE visits SET tags = array(2, 3);
DELETE FROM customers WHERE id = 1;
INSERT INTO customers VALUES (3, 'west');
--- delta
-- -1 | 1 | north
-- +1 | 1 | west

--- case: two lateral views multiply
--- covers: Q16 two lateral views
SELECT id, a, b FROM visits LATERAL VIEW explode(tags) t AS a LATERAL VIEW explode(tags) u AS b WHERE a <= b;
--- before
INSERT INTO visits (id, tags) VALUES (1, array(1, 2));
--- change
UPDATE visits SET tags = array(1, 3);
--- delta
-- -1 | 1 | 1 | 2
-- +1 | 1 | 1 | 3
-- -1 | 1 | 2 | 2
-- +1 | 1 | 3 | 3

--- case: words of a string
--- covers: Q16 explode of an expression
SELECT id, word FROM customers LATERAL VIEW explode(split(region, ' ')) t AS word;
--- before
INSERT INTO customers VALUES (1, 'far north');
--- change
UPDATE customers SET region = 'far south';
--- delta
-- -1 | 1 | north
-- +1 | 1 | south

--- case: a table function without names has those that Spark gives it
--- covers: Q16 LATERAL VIEW explode
--- spark: DuckDB has no such name
SELECT id, col FROM visits LATERAL VIEW explode(tags) t;
--- before
INSERT INTO visits (id, tags) VALUES (1, array(1, 2)), (2, array(2));
--- change
UPDATE visits SET tags = array(2, 3) WHERE id = 1;
--- delta
-1 | 1 | 1
+1 | 1 | 3

--- case: a table function without a name and without names, with places
--- covers: Q16 posexplode
--- spark: sqlglot writes something that DuckDB cannot read
SELECT id, pos, col FROM visits, LATERAL posexplode(tags);
--- before
INSERT INTO visits (id, tags) VALUES (1, array(5, 6, 7));
--- change
UPDATE visits SET tags = array(5, 7);
--- delta
-1 | 1 | 1 | 6
+1 | 1 | 1 | 7
-1 | 1 | 2 | 7

--- case: all columns of a table function without names
--- covers: Q16 LATERAL VIEW explode
--- spark: DuckDB has no such name
SELECT * FROM (SELECT id, tags FROM visits) AS v LATERAL VIEW explode(tags) t;
--- before
INSERT INTO visits (id, tags) VALUES (1, array(1, 2));
--- change
INSERT INTO visits (id, tags) VALUES (2, array(4));
DELETE FROM visits WHERE id = 1;
--- delta
-1 | 1 | [1, 2] | 1
-1 | 1 | [1, 2] | 2
+1 | 2 | [4] | 4

--- case: the entries of a map without names
--- covers: Q16 LATERAL VIEW explode
--- spark: DuckDB unnests no map
SELECT id, key, value FROM orders LATERAL VIEW explode(map('a', amount)) t;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
--- change
DELETE FROM orders WHERE id = 1;
--- delta
-1 | 1 | a | 5

--- case: elements and their places under Spark's names
--- covers: Q16 generators without names
SELECT id, posexplode(tags) FROM visits;
--- before
INSERT INTO visits VALUES (1, '2013-01-31 10:00:00', ARRAY(5, 6), NULL);
--- change
UPDATE visits SET tags = ARRAY(5);
--- delta
-- -1 | 1 | 1 | 6

--- case: a table function over the result of GROUP BY
--- covers: Q16 table functions beside GROUP BY
SELECT customer + 1 AS c, explode(collect_list(id)) AS e FROM orders WHERE amount > 1 GROUP BY 1;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
--- change
INSERT INTO orders VALUES (4, 2, 8), (5, 1, 0);
--- delta
-- +1 | 3 | 4

--- case: a table function over one group, in an order
--- covers: Q16 table functions beside GROUP BY
SELECT posexplode(collect_list(amount)) FROM orders ORDER BY pos LIMIT 2;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 9);
--- change
INSERT INTO orders VALUES (3, 2, 7);
--- delta
-- -1 | 1 | 9
-- +1 | 1 | 7

--- case: a lateral view before SELECT
--- covers: Q1 FROM before SELECT
FROM visits AS v JOIN orders AS o ON v.id = o.id LATERAL VIEW explode(v.tags) t AS tag SELECT o.amount, tag;
--- before
INSERT INTO visits VALUES (1, NULL, ARRAY(5, 6), NULL);
--- change
INSERT INTO orders VALUES (1, 2, 3);
--- delta
-- +1 | 3 | 5
-- +1 | 3 | 6

--- case: a table function over groups beside windows over the groups
--- covers: Q16 a table function over groups, beside a window
--- spark: DuckDB makes rows of the list before it counts them
SELECT explode(collect_list(id)) AS e, customer, SUM(COUNT(*)) OVER () AS n, array(1) AS one FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 7);
--- change
DELETE FROM orders WHERE id = 1;
--- delta
-- -1 | 1 | 1 | 3 | [1]
-- -1 | 2 | 1 | 3 | [1]
-- -1 | 3 | 2 | 3 | [1]
-- +1 | 2 | 1 | 2 | [1]
-- +1 | 3 | 2 | 2 | [1]

--- case: rows of a table function over groups that QUALIFY chooses
--- covers: Q16 a table function over groups, beside a window
--- spark: DuckDB has no table functions over groups
SELECT customer, explode(collect_list(amount)) AS e FROM orders GROUP BY customer QUALIFY COUNT(*) OVER (PARTITION BY customer) = 2;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 1);
--- change
INSERT INTO orders VALUES (4, 2, 3), (5, 1, 1);
--- delta
-- -1 | 1 | 5
-- -1 | 1 | 6
-- +1 | 2 | 1
-- +1 | 2 | 3

--- case: the first rows of a table function of constants over groups, by an expression
--- covers: Q16 a table function over groups, beside an order
--- spark: DuckDB has no table functions over groups
SELECT customer, explode(array(1, 2)) AS e, COUNT(*) AS n FROM orders GROUP BY customer ORDER BY n + e DESC, customer LIMIT 2;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 7);
--- change
INSERT INTO orders VALUES (4, 2, 1), (5, 2, 1);
--- delta
-- -1 | 1 | 1 | 2
-- +1 | 2 | 2 | 3

--- case: all columns of table functions without names, some after another
--- covers: Q16 generators without names
--- spark: DuckDB has no STACK, INLINE and JSON_TUPLE
SELECT o.id, s.*, i.*, j.* FROM orders AS o LATERAL VIEW stack(1, amount) s LATERAL VIEW inline(array(named_struct('x', customer, 'y', amount))) i LATERAL VIEW json_tuple('{"a": 1}', 'a') j;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
UPDATE orders SET amount = 6;
--- delta
-- -1 | 10 | 5 | 1 | 5 | 1
-- +1 | 10 | 6 | 1 | 6 | 1

--- case: all columns of joined table functions without names
--- covers: Q16 generators without names
--- spark: sqlglot writes something that DuckDB cannot read
SELECT o.amount, r.*, e.* FROM orders AS o JOIN range(2) AS r JOIN explode(array(7)) AS e;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 6);
--- delta
-- +1 | 6 | 0 | 7
-- +1 | 6 | 1 | 7

--- case: all columns of structs that a source holds
--- covers: Q16 generators without names
--- spark: DuckDB has no INLINE
SELECT id, t.* FROM visits LATERAL VIEW inline(array(place)) t;
--- before
INSERT INTO visits VALUES (1, '2013-01-31 10:00:00', ARRAY(5), NAMED_STRUCT('x', 7, 'y', 'a'));
--- change
UPDATE visits SET place = NAMED_STRUCT('x', 8, 'y', 'a');
--- delta
-- -1 | 1 | 7 | a
-- +1 | 1 | 8 | a

--- case: a table function beside *
--- covers: Q16 a table function beside *
SELECT *, explode(array(customer, amount)) AS e FROM orders;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
--- delta
-- -1 | 2 | 3 | 6 | 3
-- -1 | 2 | 3 | 6 | 6
-- +1 | 3 | 6 | 8 | 6
-- +1 | 3 | 6 | 8 | 8
-- +1 | 9 | 2 | 9 | 2
-- +1 | 9 | 2 | 9 | 9

--- case: a table function beside * of a join by names
--- covers: Q16 a table function beside *
SELECT *, explode(array(amount, o.id)) AS e
FROM (SELECT region, id FROM customers) AS c JOIN orders AS o USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- +1 | 3 | b | 6 | 8 | 3
-- +1 | 3 | b | 6 | 8 | 8
-- +2 | 9 | e | 2 | 9 | 9

--- case: a table function beside * of a subquery
--- covers: Q16 a table function beside *
SELECT id, v
FROM (SELECT * EXCEPT (customer), posexplode(array(amount, customer)) AS (p, v) FROM orders) WHERE p = 1;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
--- delta
-- -1 | 2 | 3
-- +1 | 3 | 6
-- +1 | 9 | 2

--- case: each row gets a range of its own
--- covers: Q16 LATERAL range
--- spark: DuckDB calls the column of range otherwise
SELECT o.id, r.id AS place FROM orders AS o, LATERAL range(2) AS r;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6);
--- change
INSERT INTO orders VALUES (3, 6, 8);
DELETE FROM orders WHERE id = 2;
--- delta
-- -1 | 2 | 0
-- -1 | 2 | 1
-- +1 | 3 | 0
-- +1 | 3 | 1

--- case: a table function whose columns have one name
--- covers: Q16 posexplode
--- spark: DuckDB has no posexplode
SELECT place, element
FROM (SELECT posexplode(array(amount, customer)) AS (n, n) FROM orders) AS t (place, element);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6);
--- change
DELETE FROM orders WHERE id = 2;
--- delta
-- -1 | 0 | 6
-- -1 | 1 | 3

--- case: a list over the elements of an array without an alias
--- covers: Q16 LATERAL VIEW explode
SELECT tag, COLLECT_LIST(id) AS ids FROM visits LATERAL VIEW explode(tags) AS tag GROUP BY tag;
--- before
INSERT INTO visits (id, tags) VALUES (2, array(1, 2)), (1, array(1));
--- change
INSERT INTO visits (id, tags) VALUES (3, array(2));
DELETE FROM visits WHERE id = 1;
--- delta
-- -1 | 1 | [1, 2]
-- +1 | 1 | [2]
-- -1 | 2 | [2]
-- +1 | 2 | [2, 3]
