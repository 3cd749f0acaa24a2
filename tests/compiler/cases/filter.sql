--- case: an update carries a row over the line
--- covers: Q1 WHERE
SELECT id, amount * 2 AS twice FROM orders WHERE amount > 5;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 9);
--- change
UPDATE orders SET amount = 15 - amount;
--- delta
-- +1 | 10 | 20
-- -1 | 11 | 18
-- +1 | 11 | 12

--- case: the filtered column need not be in the output
--- covers: Q1 WHERE by a column that is not returned
SELECT id FROM orders WHERE customer = 1 AND amount IS NOT NULL;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5), (12, 1, NULL);
--- change
UPDATE orders SET customer = 3 - customer;
--- delta
-- -1 | 10
-- +1 | 11

--- case: a predicate that is NULL keeps no row, nor does its negation
--- covers: Q1 WHERE with NULLs
SELECT id, amount FROM orders WHERE NOT (amount > 1);
--- before
INSERT INTO orders VALUES (10, 1, NULL);
--- change
INSERT INTO orders VALUES (11, 1, NULL), (12, 1, 1);
--- delta
-- +1 | 12 | 1

--- case: IN, BETWEEN and LIKE look at one row at a time
--- covers: Q1 IN list, BETWEEN and LIKE
SELECT id, region FROM customers WHERE id IN (1, 3) AND region LIKE 'n%' OR id BETWEEN 2 AND 2;
--- before
INSERT INTO customers VALUES (1, 'south');
--- change
UPDATE customers SET region = 'north';
INSERT INTO customers VALUES (2, NULL), (3, 'south');
--- delta
-- +1 | 1 | north
-- +1 | 2 | NULL

--- case: NOT IN a list with NULL keeps nothing
--- covers: Q1 NOT IN list with NULL
SELECT id FROM orders WHERE id NOT IN (1, NULL);
--- before
INSERT INTO orders VALUES (2, 1, 1);
--- change
INSERT INTO orders VALUES (3, 1, 1);
--- delta

--- case: IS DISTINCT FROM tells NULL from a value
--- covers: Q1 IS DISTINCT FROM
SELECT id, customer FROM orders WHERE customer IS DISTINCT FROM amount;
--- before
INSERT INTO orders VALUES (10, NULL, NULL);
--- change
UPDATE orders SET amount = 1;
--- delta
-- +1 | 10 | NULL

--- case: IS NOT DISTINCT FROM in the select list is not the list's end
--- covers: Q1 IS DISTINCT FROM
SELECT id, customer IS NOT DISTINCT FROM amount AS same, COUNT(*) AS n FROM orders GROUP BY id, customer IS NOT DISTINCT FROM amount;
--- before
INSERT INTO orders VALUES (10, NULL, NULL);
--- change
INSERT INTO orders VALUES (10, 1, NULL), (10, 2, 2);
--- delta
-- -1 | 10 | True | 1
-- +1 | 10 | True | 2
-- +1 | 10 | False | 1

--- case: a boolean is TRUE, FALSE or neither
--- covers: Q1 IS TRUE/FALSE/UNKNOWN
SELECT product, paid IS TRUE AS yes, paid IS FALSE AS no, NOT paid AS flipped FROM sales WHERE paid IS NOT TRUE;
--- before
INSERT INTO sales (product, paid) VALUES ('tea', true), ('milk', NULL);
--- change
UPDATE sales SET paid = false WHERE product = 'tea';
--- delta
-- +1 | tea | False | True | True

--- case: a filter on a computed column of a subquery
--- covers: Q12 a subquery in FROM
SELECT id, twice FROM (SELECT id, amount * 2 AS twice FROM orders WHERE amount > 0) AS t WHERE twice < 10;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
UPDATE orders SET amount = 4;
--- delta
-- +1 | 10 | 8

--- case: a filter guards the computation above it
--- covers: Q1 WHERE guards an expression that can fail
-- 3 times 60 is too large for a TINYINT, and the query never asks for it; nor may its change.
SELECT id, CAST(amount AS TINYINT) * CAST(60 AS TINYINT) AS scaled FROM (SELECT id, amount FROM orders WHERE amount < 3) AS t;
--- before
INSERT INTO orders VALUES (1, 1, 1), (2, 1, 3);
--- change
INSERT INTO orders VALUES (3, 1, 3), (4, 1, 2);
UPDATE orders SET amount = 3 WHERE id = 1;
--- delta
-- -1 | 1 | 60
-- +1 | 4 | 120

--- case: a filter guards the computation in a measure and in a key
--- covers: Q1 WHERE guards an expression that can fail
SELECT CAST(amount AS TINYINT) * CAST(60 AS TINYINT) AS scaled, SUM(CAST(amount AS TINYINT) * CAST(60 AS TINYINT)) AS total FROM orders WHERE amount < 3 GROUP BY CAST(amount AS TINYINT) * CAST(60 AS TINYINT);
--- before
INSERT INTO orders VALUES (1, 1, 1), (2, 1, 3);
--- change
INSERT INTO orders VALUES (3, 1, 3), (4, 1, 1);
--- delta
-- -1 | 60 | 60
-- +1 | 60 | 120

--- case: what HAVING guards is not computed for the other groups
--- covers: Q4 HAVING guards an expression that can fail
SELECT customer, CAST(COUNT(*) AS TINYINT) * CAST(60 AS TINYINT) AS scaled FROM orders GROUP BY customer HAVING COUNT(*) < 3;
--- before
INSERT INTO orders VALUES (1, 1, 1), (2, 1, 0), (3, 2, 1);
--- change
INSERT INTO orders VALUES (4, 1, 1), (5, 2, 1);
--- delta
-- -1 | 1 | 120
-- +1 | 2 | 120
-- -1 | 2 | 60

--- case: a measure of a group that vanishes is not computed
--- covers: Q5 aggregates inside expressions
-- 127 + 1 is too large for a TINYINT; no group has no rows.
SELECT customer, CAST(127 AS TINYINT) + CAST(1 - COUNT(*) AS TINYINT) AS rest FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (1, 1, 1), (2, 2, 0);
--- change
DELETE FROM orders WHERE id = 1;
--- delta
-- -1 | 1 | 127

--- case: a CASE guards its own branches in a group key
--- covers: Q1 CASE guards an expression that can fail
SELECT CASE WHEN amount < 3 THEN CAST(amount AS TINYINT) * CAST(60 AS TINYINT) END AS scaled, COUNT(*) AS n FROM orders GROUP BY CASE WHEN amount < 3 THEN CAST(amount AS TINYINT) * CAST(60 AS TINYINT) END;
--- before
INSERT INTO orders VALUES (1, 1, 1), (2, 1, 3);
--- change
INSERT INTO orders VALUES (3, 1, 3), (4, 1, 1);
--- delta
-- -1 | 60 | 1
-- +1 | 60 | 2
-- -1 | NULL | 1
-- +1 | NULL | 2

--- case: a collation decides what is equal to a constant
--- covers: Q1 COLLATE; Q28 equality by a collation
SELECT id, region COLLATE UTF8_LCASE IN ('NORTH', 'x') AS northern FROM customers WHERE region COLLATE UTF8_LCASE <> 'SOUTH';
--- before
INSERT INTO customers VALUES (1, 'North'), (2, 'South'), (3, NULL), (4, 'east');
--- change
UPDATE customers SET region = 'north' WHERE id = 1;
UPDATE customers SET region = 'SOUTh' WHERE id = 4;
DELETE FROM customers WHERE id = 2;
INSERT INTO customers VALUES (5, 'X');
--- delta
-- -1 | 4 | False
-- +1 | 5 | True

--- case: a collation decides which columns are equal
--- covers: Q1 COLLATE; Q28 comparisons by a collation
SELECT name, country, name COLLATE UTF8_LCASE = country AS same, CASE WHEN name COLLATE UTF8_LCASE < 'c' THEN name ELSE 'x' END AS low FROM regions WHERE name COLLATE UTF8_LCASE <> country OR country = 'B' COLLATE UTF8_LCASE;
--- before
INSERT INTO regions VALUES ('a', 'A'), ('b', 'B'), ('a', 'C'), ('D', 'c');
--- change
UPDATE regions SET name = 'B' WHERE name = 'b';
UPDATE regions SET name = 'c' WHERE name = 'D';
INSERT INTO regions VALUES ('A', 'c'), (NULL, 'b');
--- delta
-- -1 | D | c | False | x
-- +1 | A | c | False | A
-- -1 | b | B | True | b
-- +1 | B | B | True | B
-- +1 | NULL | b | NULL | x

--- case: patterns and parts by a collation
--- covers: Q1 COLLATE; Q28 comparisons by a collation
--- spark: DuckDB has no collations in LIKE, nor in functions of strings
SELECT id, region COLLATE UTF8_LCASE LIKE 'N%' AS l, contains(region COLLATE UTF8_LCASE, 'ORT') AS c, startswith(collate(region, 'UTF8_LCASE'), 'No') AS s, locate('T', region COLLATE UTF8_LCASE) AS at, CASE CAST(region AS STRING COLLATE UTF8_LCASE) WHEN 'north' THEN 1 ELSE 2 END AS n, CAST(region COLLATE UNICODE_CI AS STRING) AS r FROM customers WHERE lower(region) COLLATE system.builtin.UNICODE_CI_AI <= 'südost';
--- before
INSERT INTO customers VALUES (1, 'North'), (2, 'NORTH'), (3, 'x'), (4, 'SUDOST');
--- change
UPDATE customers SET region = 'Süd' WHERE id = 1;
INSERT INTO customers VALUES (5, 'norTh');
DELETE FROM customers WHERE id = 4;
--- delta
-- -1 | 1 | True | True | True | 4 | 1 | North
-- +1 | 1 | False | False | False | 0 | 2 | Süd
-- -1 | 4 | False | False | False | 6 | 2 | SUDOST
-- +1 | 5 | True | True | True | 4 | 1 | norTh

--- case: groups, windows and an order by comparisons of a collation
--- covers: Q1 COLLATE; Q28 comparisons by a collation
SELECT region COLLATE UTF8_LCASE = 'NORTH' AS north, COUNT(*) AS n, COUNT(*) FILTER (WHERE region COLLATE UTF8_LCASE = 'south') AS s, MIN(region) AS least FROM customers GROUP BY region COLLATE UTF8_LCASE = 'NORTH' HAVING MIN(region) COLLATE UTF8_LCASE <> 'OTHER' ORDER BY MIN(region) COLLATE UTF8_LCASE;
--- before
INSERT INTO customers VALUES (1, 'North'), (2, 'north'), (3, 'x'), (4, 'SOUTH');
--- change
UPDATE customers SET region = 'NORTH' WHERE id = 3;
INSERT INTO customers VALUES (5, 'south');
--- delta
-- -1 | True | 2 | 0 | North
-- +1 | True | 3 | 0 | NORTH
-- -1 | False | 2 | 1 | SOUTH
-- +1 | False | 2 | 2 | SOUTH

--- case: quotes inside of texts
--- covers: Q1 literals
SELECT id, 'it''s' AS a, "say ""x""" AS b, 'a' 'b' AS c, 'a\'''b' AS d FROM customers WHERE region = 'O''Brien' OR region LIKE '%''s';
--- before
INSERT INTO customers VALUES (1, 'O\'Brien'), (2, 'OBrien'), (3, 'Jack\'s'), (4, 'Jacks');
--- change
INSERT INTO customers VALUES (5, 'O\'Brien'), (6, 'OBrien'), (7, 'Jill\'s'), (8, 'Jills');
--- delta
-- +1 | 5 | it's | say "x" | ab | a''b
-- +1 | 7 | it's | say "x" | ab | a''b
