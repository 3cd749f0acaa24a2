--- case: a map as a column
--- covers: Q28 a MAP as a column
--- spark: DuckDB takes MAP for the type
SELECT id, map('b', amount, 'a', customer) AS m FROM orders;
--- before
INSERT INTO orders VALUES (1, 1, 5), (1, 1, 5), (2, 1, 6), (3, NULL, 7);
--- change
DELETE FROM orders WHERE id = 2;
UPDATE orders SET amount = 8 WHERE id = 3;
INSERT INTO orders VALUES (1, 1, 5);
--- delta
-- +1 | 1 | [('b', 5), ('a', 1)]
-- -1 | 2 | [('b', 6), ('a', 1)]
-- -1 | 3 | [('b', 7), ('a', None)]
-- +1 | 3 | [('b', 8), ('a', None)]

--- case: maps that differ in the order of their entries alone
--- covers: Q28 a MAP as a column
--- spark: DuckDB takes MAP for the type
SELECT IF(id > 1, map('a', 1, 'b', 2), map('b', 2, 'a', 1)) AS m, customer FROM orders;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 5);
--- change
DELETE FROM orders WHERE id = 1;
--- delta
-- -1 | [('b', 2), ('a', 1)] | 1

--- case: maps in lists, structs and maps
--- covers: Q28 a MAP inside another value
--- spark: DuckDB takes MAP for the type
SELECT id, array(map('b', amount, 'a', 1)) AS l, named_struct('m', map('b', amount)) AS s, map('x', map('b', amount, 'a', 1)) AS m FROM orders;
--- before
INSERT INTO orders VALUES (1, 1, 5), (1, 1, 5), (2, 1, NULL);
--- change
DELETE FROM orders WHERE id = 2;
INSERT INTO orders VALUES (1, 1, 5);
--- delta
-- +1 | 1 | [[('b', 5), ('a', 1)]] | {'m': [('b', 5)]} | [('x', [('b', 5), ('a', 1)])]
-- -1 | 2 | [[('b', None), ('a', 1)]] | {'m': [('b', None)]} | [('x', [('b', None), ('a', 1)])]

--- case: groups by a map
--- covers: Q28 GROUP BY of a MAP
--- spark: DuckDB tells maps apart by the order of their entries
SELECT m, COUNT(*) AS n FROM (SELECT IF(id > 1, map('a', CAST(amount AS STRING), 'b', '2'), map('b', '2', 'a', CAST(amount AS STRING))) AS m FROM orders) AS t GROUP BY m;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
--- change
INSERT INTO orders VALUES (2, 1, 5);
DELETE FROM orders WHERE amount = 6;
--- delta
-- -1 | [('a', '5'), ('b', '2')] | 1
-- +1 | [('a', '5'), ('b', '2')] | 2
-- -1 | [('a', '6'), ('b', '2')] | 1

--- case: groups by a map that is not returned, some of which go
--- covers: Q28 GROUP BY of a MAP
--- spark: DuckDB tells maps apart by the order of their entries
SELECT MIN(id) AS least, COUNT(*) AS n FROM orders GROUP BY map('c', CAST(customer AS STRING)) HAVING COUNT(*) > 1;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 6), (4, NULL, 6), (6, 0, 1);
--- change
INSERT INTO orders VALUES (0, 2, 5), (5, NULL, 6);
DELETE FROM orders WHERE id = 1;
--- delta
-- -1 | 1 | 2
-- +1 | 0 | 2
-- +1 | 4 | 2

--- case: sets of groups by a map
--- covers: Q28 GROUP BY of a MAP; Q9 grouping sets by a MAP
--- spark: DuckDB tells maps apart by the order of their entries
SELECT m, GROUPING(m) AS g, SUM(amount) AS s FROM (SELECT map('c', CAST(customer AS STRING)) AS m, amount FROM orders) AS t GROUP BY ROLLUP (m);
--- before
INSERT INTO orders VALUES (1, 1, 5);
--- change
INSERT INTO orders VALUES (1, 2, 6);
--- delta
-- +1 | [('c', '2')] | 0 | 6
-- -1 | NULL | 1 | 5
-- +1 | NULL | 1 | 11

--- case: groups by a map, and a subquery for each
--- covers: Q28 GROUP BY of a MAP
--- spark: DuckDB tells maps apart by the order of their entries
SELECT m['c'] AS c, COUNT(*) AS n FROM (SELECT map('c', CAST(customer AS STRING)) AS m FROM orders) AS t GROUP BY m HAVING EXISTS (SELECT 1 FROM customers AS c WHERE c.id = m['c']);
--- before
INSERT INTO orders VALUES (1, 1, 5), (1, 2, 5);
INSERT INTO customers VALUES (1, 'x');
--- change
INSERT INTO customers VALUES (2, 'x');
INSERT INTO orders VALUES (1, 1, 5);
--- delta
-- -1 | 1 | 1
-- +1 | 1 | 2
-- +1 | 2 | 1

--- case: a map of a group
--- covers: Q28 a MAP made of a group
--- spark: DuckDB takes MAP for the type
SELECT customer, map('ids', collect_list(id), 'amounts', collect_set(amount)) AS m FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 6);
--- change
INSERT INTO orders VALUES (0, 1, 5);
UPDATE orders SET amount = 6 WHERE id = 3;
DELETE FROM orders WHERE id = 2;
--- delta
-- -1 | 1 | [('ids', [1, 2]), ('amounts', [5, 6])]
-- +1 | 1 | [('ids', [0, 1]), ('amounts', [5])]

--- case: a map of sums
--- covers: Q28 a MAP made of a group
--- spark: DuckDB takes MAP for the type
SELECT customer, map('n', COUNT(*), 'sum', SUM(amount)) AS m FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 2, 6);
--- change
UPDATE orders SET amount = 6 WHERE id = 1;
UPDATE orders SET id = 3 WHERE id = 2;
--- delta
-- -1 | 1 | [('n', 1), ('sum', 5)]
-- +1 | 1 | [('n', 1), ('sum', 6)]

--- case: a list of maps
--- covers: Q7 a list of maps
--- spark: DuckDB takes MAP for the type
SELECT customer, collect_list(map('a', amount)) FILTER (WHERE id > 1) AS x FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (2, 1, 6), (1, 1, 7);
--- change
INSERT INTO orders VALUES (2, 1, 5);
--- delta
-- -1 | 1 | [[('a', 6)]]
-- +1 | 1 | [[('a', 5)], [('a', 6)]]

--- case: the map of one row of a group
--- covers: Q7 the first map of a group
--- spark: DuckDB takes MAP for the type
SELECT customer, first(map('a', amount)) AS f, max_by(map('a', amount), id) AS b, any_value(named_struct('m', map('a', amount))) AS s FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (1, 1, 6), (1, 1, 7);
--- change
INSERT INTO orders VALUES (1, 1, 8), (0, 1, 5);
--- delta
-- -1 | 1 | [('a', 6)] | [('a', 7)] | {'m': [('a', 6)]}
-- +1 | 1 | [('a', 5)] | [('a', 8)] | {'m': [('a', 5)]}

--- case: some of the rows with maps
--- covers: Q21 LIMIT without ORDER BY over maps
--- spark: DuckDB takes MAP for the type
SELECT map('a', amount) AS m FROM orders LIMIT 2;
--- before
INSERT INTO orders VALUES (1, 1, 6), (1, 1, 7);
--- change
INSERT INTO orders VALUES (1, 1, 5);
--- delta
-- -1 | [('a', 7)]
-- +1 | [('a', 5)]

--- case: the first rows, which differ in a map alone
--- covers: Q21 LIMIT without ORDER BY over maps
--- spark: DuckDB takes MAP for the type
SELECT id, map('a', amount) AS m FROM orders ORDER BY id LIMIT 1;
--- before
INSERT INTO orders VALUES (1, 1, 6), (1, 1, 7);
--- change
INSERT INTO orders VALUES (1, 1, 5);
--- delta
-- -1 | 1 | [('a', 6)]
-- +1 | 1 | [('a', 5)]

--- case: numbers of rows that differ in a map alone
--- covers: Q19 ties that a MAP decides
--- spark: DuckDB takes MAP for the type
SELECT m['a'] AS a, row_number() OVER (ORDER BY customer) AS r FROM (SELECT customer, map('a', amount) AS m FROM orders) AS t;
--- before
INSERT INTO orders VALUES (1, 1, 6), (1, 1, 7);
--- change
INSERT INTO orders VALUES (1, 1, 5);
--- delta
-- -1 | 6 | 1
-- -1 | 7 | 2
-- +1 | 5 | 1
-- +1 | 6 | 2
-- +1 | 7 | 3

--- case: maps of both sides of UNION ALL
--- covers: Q11 UNION ALL of maps
--- spark: DuckDB takes MAP for the type
SELECT map('a', amount) AS m FROM orders UNION ALL SELECT map('a', id) FROM customers;
--- before
INSERT INTO orders VALUES (1, 1, 6);
INSERT INTO customers VALUES (6, 'x');
--- change
DELETE FROM customers WHERE id = 6;
--- delta
-- -1 | [('a', 6)]

--- case: a map beside an outer join
--- covers: Q28 a MAP as a column
--- spark: DuckDB takes MAP for the type
SELECT c.id, map('r', region) AS m, SUM(amount) AS s FROM customers AS c LEFT JOIN orders AS o ON o.customer = c.id GROUP BY c.id, region;
--- before
INSERT INTO customers VALUES (1, 'x'), (2, NULL);
INSERT INTO orders VALUES (1, 1, 6);
--- change
INSERT INTO orders VALUES (1, 2, 7);
DELETE FROM orders WHERE customer = 1;
--- delta
-- -1 | 1 | [('r', 'x')] | 6
-- +1 | 1 | [('r', 'x')] | NULL
-- -1 | 2 | [('r', None)] | NULL
-- +1 | 2 | [('r', None)] | 7

--- case: maps along a recursion
--- covers: Q18 a MAP in a recursion
--- spark: DuckDB takes MAP for the type
WITH RECURSIVE r AS (SELECT id, map('c', customer) AS m FROM orders WHERE amount = 0 UNION ALL SELECT o.id, r.m FROM r JOIN orders AS o ON o.amount = r.id) SELECT id, m FROM r;
--- before
INSERT INTO orders VALUES (1, 7, 0), (2, 8, 1);
--- change
INSERT INTO orders VALUES (3, 9, 2);
DELETE FROM orders WHERE id = 1;
INSERT INTO orders VALUES (1, 6, 0);
--- delta
-- -1 | 1 | [('c', 7)]
-- -1 | 2 | [('c', 7)]
-- +1 | 1 | [('c', 6)]
-- +1 | 2 | [('c', 6)]
-- +1 | 3 | [('c', 6)]
