--- case: rows of the query joined to a table
--- covers: Q12 VALUES
SELECT o.id, t.name FROM orders AS o JOIN (VALUES (1, 'one'), (2, 'two')) AS t(n, name) ON o.customer = t.n;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 3, 5);
--- change
UPDATE orders SET customer = customer - 1;
--- delta
-- -1 | 10 | one
-- +1 | 11 | two

--- case: rows of the query that find no partner are padded
--- covers: Q12 VALUES
SELECT t.n, o.id FROM VALUES (1), (2) AS t(n) LEFT JOIN orders AS o ON o.customer = t.n;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
UPDATE orders SET customer = 2;
--- delta
-- -1 | 1 | 10
-- +1 | 1 | NULL
-- +1 | 2 | 10
-- -1 | 2 | NULL

--- case: rows of the query whose columns have the names that Spark gives them
--- covers: Q12 VALUES
--- spark: DuckDB counts these columns from 0
SELECT o.id, t.col2 FROM orders AS o JOIN VALUES (1, 'one'), (2, 'two') AS t ON o.customer = t.col1;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 3, 5);
--- change
UPDATE orders SET customer = customer - 1;
--- delta
-- -1 | 10 | one
-- +1 | 11 | two

--- case: rows of the query without any name, first among united queries
--- covers: Q12 VALUES; Q11 UNION ALL with constants
--- spark: DuckDB counts these columns from 0
VALUES (1, 2), (3, 4) UNION ALL SELECT id, amount FROM orders UNION ALL SELECT * FROM VALUES (5, 6);
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
DELETE FROM orders;
--- delta
-- -1 | 10 | 5

--- case: constants united with a table
--- covers: Q12 VALUES; Q11 UNION ALL with constants
SELECT customer AS id FROM orders UNION ALL SELECT n FROM (VALUES (1), (2)) AS t(n);
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
DELETE FROM orders;
--- delta
-- -1 | 1

--- case: a SELECT without FROM beside a table
--- covers: Q12 SELECT without FROM
SELECT o.id, one.n FROM orders AS o CROSS JOIN (SELECT 7 AS n) AS one;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 5);
--- delta
-- +1 | 11 | 7

--- case: one side of a union without a table
--- covers: Q12 SELECT without FROM; Q11 UNION ALL with constants
SELECT id FROM orders UNION ALL SELECT 1;
--- before
INSERT INTO orders VALUES (1, 1, 5);
--- change
UPDATE orders SET id = 2;
--- delta
-- -1 | 1
-- +1 | 2

--- case: IN rows of the query
--- covers: Q13 IN VALUES
SELECT id FROM orders WHERE customer IN (SELECT n FROM (VALUES (1), (2)) AS t(n));
--- before
INSERT INTO orders VALUES (10, 2, 5), (11, 0, 5), (12, 1, 5);
--- change
UPDATE orders SET customer = customer + 1;
--- delta
-- -1 | 10
-- +1 | 11

--- case: a calendar of the query, with what each entry has
--- covers: Q12 VALUES; Q14 a correlated scalar subquery
SELECT t.n, (SELECT COUNT(*) FROM orders AS o WHERE o.customer = t.n) AS orders_ FROM (VALUES (1), (2), (NULL)) AS t(n);
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
UPDATE orders SET customer = NULL;
INSERT INTO orders VALUES (11, 2, 5), (12, 2, 5);
--- delta
-- +1 | 1 | 0
-- -1 | 1 | 1
-- -1 | 2 | 0
-- +1 | 2 | 2

--- case: a group by a column of one of two tables of rows, which both have
--- covers: Q12 rows of the query in FROM
SELECT 1 AS one FROM orders AS o, (VALUES (1, '1')) AS g(n, s), (VALUES (0, '1')) AS d(n, s) GROUP BY d.s;
--- before
--- change
INSERT INTO orders VALUES (10, 1, 5);
--- delta
-- +1 | 1

--- case: a group by a column of a table function, which the table has too
--- covers: Q16 explode in a LATERAL VIEW
SELECT 1 AS one FROM orders AS o LATERAL VIEW explode(array(1, 1)) t AS id GROUP BY t.id;
--- before
--- change
INSERT INTO orders VALUES (10, 1, 5);
--- delta
-- +1 | 1

--- case: an array without a NULL in it, and a struct
--- covers: Q28 nested types
SELECT id, array(1, 2) AS pair, named_struct('a', 1, 'b', array('x')) AS made FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 7);
--- change
DELETE FROM orders WHERE id = 10;
--- delta
-- -1 | 10 | [1, 2] | {'a': 1, 'b': ['x']}

--- case: constants that are joined in parentheses
--- covers: Q12 VALUES that is joined in parentheses
--- spark: DuckDB joins no VALUES without parentheses
SELECT c.id, v.b, o.amount FROM customers AS c LEFT JOIN (VALUES (1, 'one'), (2, 'two') AS v(a, b) JOIN orders AS o ON o.id = v.a) ON o.customer = c.id;
--- before
INSERT INTO orders VALUES (1, 1, 5), (3, 2, 7);
INSERT INTO customers VALUES (1, 'x'), (2, 'y');
--- change
INSERT INTO orders VALUES (2, 2, 6);
DELETE FROM orders WHERE id = 1;
--- delta
-- -1 | 1 | one | 5
-- +1 | 1 | NULL | NULL
-- -1 | 2 | NULL | NULL
-- +1 | 2 | two | 6
