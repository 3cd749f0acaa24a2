--- case: a new order meets a new customer
--- covers: Q2 INNER JOIN
-- Both rows of the pair are new. It must be counted once, not twice.
SELECT c.region, o.amount FROM orders AS o JOIN customers AS c ON o.customer = c.id;
--- before
INSERT INTO customers VALUES (1, 'north');
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO customers VALUES (2, 'south');
INSERT INTO orders VALUES (11, 2, 7);
--- delta
-- +1 | south | 7

--- case: the order and its customer go together
--- covers: Q2 INNER JOIN
-- The row to take away is found through the customer as it was.
SELECT c.region, o.amount FROM orders AS o JOIN customers AS c ON o.customer = c.id;
--- before
INSERT INTO customers VALUES (1, 'north');
INSERT INTO orders VALUES (10, 1, 5);
--- change
DELETE FROM orders;
DELETE FROM customers;
--- delta
-- -1 | north | 5

--- case: the key of a row changes and its old partner goes in one window
--- covers: Q3 a key changes and its partner goes; Q2 INNER JOIN
SELECT o.id, c.region FROM orders AS o JOIN customers AS c ON o.customer = c.id;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (10, 1, 5);
--- change
UPDATE orders SET customer = 2;
DELETE FROM customers WHERE id = 1;
--- delta
-- -1 | 10 | north
-- +1 | 10 | south

--- case: the keys of both sides change places in one window
--- covers: Q3 keys change on both sides; Q2 INNER JOIN
SELECT o.id, c.region FROM orders AS o JOIN customers AS c ON o.customer = c.id;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
--- change
UPDATE orders SET customer = 3 - customer;
UPDATE customers SET id = 3 - id;
--- delta

--- case: duplicates multiply
--- covers: Q26 copies on both sides of a join; Q2 INNER JOIN
SELECT c.region FROM orders AS o JOIN customers AS c ON o.customer = c.id;
--- before
INSERT INTO customers VALUES (1, 'north'), (1, 'north'), (1, 'north');
--- change
INSERT INTO orders VALUES (10, 1, 5), (10, 1, 5);
--- delta
-- +6 | north

--- case: NULL keys never meet
--- covers: Q28 NULL join keys
SELECT c.region FROM orders AS o JOIN customers AS c ON o.customer = c.id;
--- before
INSERT INTO customers VALUES (NULL, 'nowhere');
--- change
INSERT INTO orders VALUES (10, NULL, 5);
--- delta

--- case: NULL keys meet where the condition says so
--- covers: Q28 NULL join keys; Q1 <=>
SELECT c.region FROM orders AS o JOIN customers AS c ON o.customer <=> c.id;
--- before
INSERT INTO customers VALUES (NULL, 'nowhere');
--- change
INSERT INTO orders VALUES (10, NULL, 5);
--- delta
-- +1 | nowhere

--- case: a table joined to itself
--- covers: Q2 a self join
SELECT a.id, b.id AS other FROM orders AS a JOIN orders AS b ON a.customer = b.customer AND a.id < b.id;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 5), (12, 1, 5);
--- delta
-- +1 | 10 | 11
-- +1 | 10 | 12
-- +1 | 11 | 12

--- case: a row that is its own partner goes
--- covers: Q2 a self join; Q3 rows go on several sides
SELECT a.id, b.amount FROM orders AS a JOIN orders AS b ON a.id = b.customer;
--- before
INSERT INTO orders VALUES (1, 1, 5), (1, 1, 5);
--- change
DELETE FROM orders;
INSERT INTO orders VALUES (1, 1, 5);
--- delta
-- -3 | 1 | 5

--- case: a non-equi condition
--- covers: Q2 non-equi conditions
SELECT o.id, c.id AS customer FROM orders AS o JOIN customers AS c ON o.amount > c.id;
--- before
INSERT INTO customers VALUES (1, 'north'), (4, 'south');
INSERT INTO orders VALUES (10, 1, 3);
--- change
UPDATE orders SET amount = 5;
UPDATE customers SET id = 2 WHERE id = 1;
--- delta
-- -1 | 10 | 1
-- +1 | 10 | 2
-- +1 | 10 | 4

--- case: a condition with OR
--- covers: Q2 non-equi conditions
SELECT o.id, c.region FROM orders AS o JOIN customers AS c ON o.customer = c.id OR o.amount = c.id;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (10, 1, 3);
--- change
UPDATE orders SET amount = 2;
--- delta
-- +1 | 10 | south

--- case: CROSS JOIN pairs every row with every row
--- covers: Q2 CROSS JOIN
SELECT o.id, c.region FROM orders AS o CROSS JOIN customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north');
INSERT INTO orders VALUES (10, 1, 3);
--- change
INSERT INTO customers VALUES (2, 'south');
INSERT INTO orders VALUES (11, 1, 3);
DELETE FROM orders WHERE id = 10;
--- delta
-- -1 | 10 | north
-- +1 | 11 | north
-- +1 | 11 | south

--- case: a comma is a cross join that WHERE makes a join
--- covers: Q2 comma joins
SELECT o.id, c.region FROM orders o, customers c WHERE o.customer = c.id AND c.region <> '1';
--- before
INSERT INTO customers VALUES (1, 'north');
--- change
INSERT INTO orders VALUES (10, 1, 3), (11, 2, 3);
--- delta
-- +1 | 10 | north

--- case: tables without an alias answer to their names
--- covers: Q2 INNER JOIN without aliases
SELECT orders.id, customers.region FROM orders JOIN customers ON orders.customer = customers.id;
--- before
INSERT INTO customers VALUES (1, 'north');
--- change
INSERT INTO orders VALUES (10, 1, 3);
--- delta
-- +1 | 10 | north

--- case: conditions of WHERE on one side and on both, beside ON
--- covers: Q2 INNER JOIN and WHERE
SELECT o.id, c.region FROM orders AS o JOIN customers AS c ON o.customer = c.id WHERE o.amount <> c.id AND o.amount > 1 AND o.id < 20;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
--- change
INSERT INTO orders VALUES (11, 2, 1), (12, 1, 2), (13, 2, 2), (14, 2, 3), (20, 1, 5);
--- delta
-- +1 | 12 | north
-- +1 | 14 | south

--- case: USING shows its column once
--- covers: Q2 USING
SELECT id, amount, region FROM orders JOIN customers USING (id);
--- before
INSERT INTO customers VALUES (10, 'north');
--- change
INSERT INTO orders VALUES (10, 1, 3), (11, 1, 3);
--- delta
-- +1 | 10 | 3 | north

--- case: the star of USING begins with its column
--- covers: Q2 USING
SELECT * FROM orders JOIN customers USING (id);
--- before
INSERT INTO customers VALUES (10, 'north');
--- change
INSERT INTO orders VALUES (10, 1, 3);
--- delta
-- +1 | 10 | 1 | 3 | north

--- case: three tables, all of which change
--- covers: Q2 three tables move
SELECT o.id, r.country FROM orders AS o JOIN customers AS c ON o.customer = c.id JOIN regions AS r ON c.region = r.name;
--- before
INSERT INTO orders VALUES (10, 1, 1), (11, 2, 1);
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO regions VALUES ('north', 'N'), ('south', 'S');
--- change
DELETE FROM orders WHERE id = 10;
UPDATE customers SET region = 'north' WHERE id = 2;
UPDATE regions SET country = 'NN' WHERE name = 'north';
--- delta
-- -1 | 10 | N
-- -1 | 11 | S
-- +1 | 11 | NN

--- case: a pair that no reader ever saw is not computed with
--- covers: Q2 INNER JOIN below an expression that can fail
-- 100 times 5 is too large for a TINYINT, and the two were never there together.
SELECT o.id, CAST(o.amount AS TINYINT) * CAST(length(c.region) AS TINYINT) AS product FROM orders AS o JOIN customers AS c ON o.customer = c.id;
--- before
INSERT INTO orders VALUES (10, 1, 100);
INSERT INTO customers VALUES (1, 'x');
--- change
UPDATE orders SET amount = 2;
UPDATE customers SET region = 'north';
--- delta
-- -1 | 10 | 100
-- +1 | 10 | 10

--- case: a pair that no reader ever saw is not cast
--- covers: Q2 INNER JOIN below an expression that can fail
-- The amount before and the region after make --5, which is no number; CASE keeps other regions from the cast.
SELECT o.id, CASE WHEN c.region IN ('', '-') THEN CAST(CONCAT(c.region, o.amount) AS INT) END AS number FROM orders AS o JOIN customers AS c ON o.customer = c.id;
--- before
INSERT INTO orders VALUES (10, 1, -5);
INSERT INTO customers VALUES (1, '');
--- change
UPDATE orders SET amount = 4;
UPDATE customers SET region = '-';
--- delta
-- -1 | 10 | -5
-- +1 | 10 | -4

--- case: three tables lose their rows together
--- covers: Q2 three tables move; Q3 rows go on several sides
SELECT o.id, c.id AS customer, r.country FROM orders AS o JOIN customers AS c ON o.customer = c.id JOIN regions AS r ON c.region = r.name;
--- before
INSERT INTO orders VALUES (10, 1, 1);
INSERT INTO customers VALUES (1, 'north');
INSERT INTO regions VALUES ('north', 'N');
--- change
DELETE FROM orders;
DELETE FROM customers;
DELETE FROM regions;
--- delta
-- -1 | 10 | 1 | N

--- case: four tables, one of them twice
--- covers: Q2 four tables move
SELECT a.id, b.id AS other, r.country FROM orders AS a JOIN customers AS c ON a.customer = c.id JOIN regions AS r ON c.region = r.name JOIN orders AS b ON b.amount = a.amount AND b.id <> a.id;
--- before
INSERT INTO orders VALUES (10, 1, 1);
INSERT INTO customers VALUES (1, 'north');
INSERT INTO regions VALUES ('north', 'N');
--- change
INSERT INTO orders VALUES (11, 1, 1);
--- delta
-- +1 | 10 | 11 | N
-- +1 | 11 | 10 | N

--- case: the right side of a join is itself a join
--- covers: Q2 a join of a join
SELECT o.id, t.country FROM orders AS o JOIN (SELECT c.id, r.country FROM customers AS c JOIN regions AS r ON c.region = r.name) AS t ON o.customer = t.id;
--- before
INSERT INTO customers VALUES (1, 'north');
INSERT INTO regions VALUES ('north', 'N');
--- change
INSERT INTO orders VALUES (10, 1, 1);
UPDATE regions SET country = 'NN';
--- delta
-- +1 | 10 | NN

--- case: a join of two groups
--- covers: Q2 a join of groups
SELECT a.customer, a.n, b.n AS m FROM (SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer) AS a JOIN (SELECT id, COUNT(*) AS n FROM customers GROUP BY id) AS b ON a.customer = b.id;
--- before
INSERT INTO orders VALUES (10, 1, 1);
INSERT INTO customers VALUES (1, 'north');
--- change
INSERT INTO orders VALUES (11, 1, 1);
INSERT INTO customers VALUES (1, 'south');
--- delta
-- -1 | 1 | 1 | 1
-- +1 | 1 | 2 | 2

--- case: NATURAL JOIN meets in the columns of one name
--- covers: Q2 NATURAL JOIN
SELECT * FROM orders NATURAL JOIN customers;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
INSERT INTO customers VALUES (1, 'north');
--- change
UPDATE orders SET id = 2 WHERE id = 1;
UPDATE customers SET id = 2;
--- delta
-- -1 | 1 | 1 | 5 | north
-- +1 | 2 | 1 | 5 | north
-- +1 | 2 | 1 | 6 | north

--- case: NATURAL LEFT JOIN
--- covers: Q2 NATURAL JOIN
SELECT id, amount, region FROM orders NATURAL LEFT JOIN customers;
--- before
INSERT INTO orders VALUES (1, 1, 5);
INSERT INTO customers VALUES (1, 'north');
--- change
DELETE FROM customers;
--- delta
-- +1 | 1 | 5 | NULL
-- -1 | 1 | 5 | north

--- case: a join in parentheses is joined first
--- covers: Q2 a join in parentheses
SELECT o.id, c.id AS customer, r.country FROM orders AS o JOIN (customers AS c JOIN regions AS r ON c.region = r.name) ON o.customer = c.id;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO regions VALUES ('north', 'here');
--- change
UPDATE regions SET name = 'south';
--- delta
-- -1 | 10 | 1 | here
-- +1 | 11 | 2 | here

--- case: deletes on every side of four tables
--- covers: Q2 four tables move; Q3 rows go on several sides
SELECT o.id, c.region, r.country, s.product FROM orders AS o JOIN customers AS c ON o.customer = c.id JOIN regions AS r ON c.region = r.name JOIN sales AS s ON s.product = r.country;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5), (12, 2, 5);
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO regions VALUES ('north', 'tea'), ('south', 'tea');
INSERT INTO sales (product) VALUES ('tea'), ('tea');
--- change
DELETE FROM orders WHERE id = 11;
DELETE FROM customers WHERE id = 1;
DELETE FROM regions WHERE name = 'north';
DELETE FROM sales;
INSERT INTO sales (product) VALUES ('tea');
--- delta
-- -2 | 10 | north | tea | tea
-- -2 | 11 | south | tea | tea
-- -1 | 12 | south | tea | tea

--- case: a join by a collation
--- covers: Q28 joins by a collation; Q2 a condition that is no equality of keys
SELECT c.id, r.name, r.country FROM customers AS c JOIN regions AS r ON c.region COLLATE UTF8_LCASE = r.name;
--- before
INSERT INTO customers VALUES (1, 'North'), (2, 'NORTH'), (3, 'south');
INSERT INTO regions VALUES ('north', 'x'), ('nOrth', 'y');
--- change
DELETE FROM regions WHERE name = 'nOrth';
INSERT INTO regions VALUES ('SOUTH', 'z');
INSERT INTO customers VALUES (4, 'north');
--- delta
-- -1 | 1 | nOrth | y
-- -1 | 2 | nOrth | y
-- +1 | 3 | SOUTH | z
-- +1 | 4 | north | x

--- case: a join by keys and a collation
--- covers: Q28 joins by a collation
SELECT o.id, c.region, r.country FROM orders AS o JOIN customers AS c ON o.customer = c.id JOIN regions AS r ON r.name = c.region COLLATE UTF8_LCASE;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 2, 5);
INSERT INTO customers VALUES (1, 'North'), (2, 'south');
INSERT INTO regions VALUES ('NORTH', 'x'), ('SOUTH', 'y');
--- change
UPDATE customers SET region = 'North' WHERE id = 2;
INSERT INTO regions VALUES ('north', 'z');
DELETE FROM orders WHERE id = 1;
--- delta
-- -1 | 1 | North | x
-- -1 | 2 | south | y
-- +1 | 2 | North | x
-- +1 | 2 | North | z

--- case: a join in parentheses that is matched by names
--- covers: Q2 USING beside parentheses
SELECT *, c.id AS again FROM orders AS o JOIN (customers AS c JOIN (SELECT id, amount AS x FROM orders) AS d USING (id)) USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
INSERT INTO customers VALUES (1, 'a'), (2, 'b');
--- change
DELETE FROM customers WHERE id = 1;
INSERT INTO orders VALUES (2, 3, 7);
--- delta
-- -1 | 1 | 1 | 5 | a | 5 | 1
-- +1 | 2 | 3 | 7 | b | 7 | 2
-- +1 | 2 | 3 | 7 | b | 6 | 2
-- +1 | 2 | 1 | 6 | b | 7 | 2

--- case: groups by a column in parentheses that are matched by names
--- covers: Q2 USING beside parentheses
SELECT MAX(o.id) AS m, SUM(D.customer) AS s FROM orders AS o JOIN (customers AS c JOIN orders AS d USING (id)) USING (id) WHERE o.amount >= d.amount GROUP BY d.amount, c.region;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 2, 5);
INSERT INTO customers VALUES (1, 'a'), (2, 'a');
--- change
UPDATE orders SET amount = 6 WHERE id = 2;
UPDATE customers SET region = 'b' WHERE id = 1;
--- delta
-- -1 | 2 | 3
-- +1 | 1 | 1
-- +1 | 2 | 2

--- case: NATURAL JOIN of joins in parentheses
--- covers: Q2 NATURAL JOIN beside parentheses
SELECT * FROM orders AS o NATURAL JOIN (customers AS c NATURAL JOIN (regions AS r JOIN (SELECT name, id AS id FROM regions, customers) AS s USING (name)));
--- before
INSERT INTO orders VALUES (1, 1, 5);
INSERT INTO customers VALUES (1, 'a');
INSERT INTO regions VALUES ('n', 'm');
--- change
INSERT INTO customers VALUES (2, 'b');
INSERT INTO orders VALUES (2, 2, 6);
--- delta
-- +1 | 2 | 2 | 6 | b | n | m

--- case: rows in order over parentheses that are matched by names
--- covers: Q2 USING beside parentheses
SELECT d.id AS other, ROW_NUMBER() OVER (PARTITION BY o.customer ORDER BY d.amount) AS n FROM orders AS o JOIN (customers AS c JOIN orders AS d USING (id)) USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 5);
INSERT INTO customers VALUES (1, 'a'), (2, 'b');
--- change
INSERT INTO orders VALUES (3, 1, 4);
INSERT INTO customers VALUES (3, 'c');
--- delta
-- -1 | 1 | 1
-- +1 | 1 | 2
-- -1 | 2 | 2
-- +1 | 2 | 3
-- +1 | 3 | 1

--- case: tables in an order in which nothing connects them
--- covers: Q11 the order of joins
SELECT o.id, r.country FROM orders AS o, regions AS r, customers AS c WHERE o.customer = c.id AND c.region = r.name;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO regions VALUES ('north', 'NO'), ('south', 'IT');
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 2, 6);
UPDATE regions SET country = 'SE' WHERE name = 'north';
UPDATE customers SET region = NULL WHERE id = 2;
--- delta
-- +1 | 10 | SE
-- -1 | 10 | NO

--- case: alternatives that repeat a join
--- covers: Q11 a join in every alternative
SELECT o.id, c.region FROM orders AS o, customers AS c WHERE (o.customer = c.id AND o.amount > 5 AND c.region = 'north') OR ((c.region = 'south' OR o.amount = 1) AND o.customer = c.id);
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, NULL);
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6), (12, 3, 1);
--- change
UPDATE orders SET amount = 6 WHERE id = 10;
INSERT INTO orders VALUES (13, 2, 0), (14, 3, 9);
UPDATE customers SET region = 'south' WHERE id = 3;
--- delta
-- +1 | 10 | north
-- +1 | 12 | south
-- +1 | 13 | south
-- +1 | 14 | south
-- -1 | 12 | NULL

--- case: an alternative that is a part of the other
--- covers: Q11 a join in every alternative
SELECT o.id, c.id AS c FROM orders AS o, customers AS c WHERE o.customer = c.id OR (o.customer = c.id AND o.amount > 5);
--- before
INSERT INTO customers VALUES (1, 'north');
INSERT INTO orders VALUES (10, 1, 5), (11, NULL, 6);
--- change
UPDATE orders SET customer = 1 WHERE id = 11;
--- delta
-- +1 | 11 | 1

--- case: a query that begins with FROM and rows of its own, joined
--- covers: Q2 INNER JOIN
--- spark: sqlglot's own parser of Spark's SQL reads no join after VALUES there
FROM VALUES (10), (11) AS v(x) JOIN orders AS o ON o.id = v.x SELECT o.id, v.x + 1 AS next;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 5), (12, 1, 5);
--- delta
-- +1 | 11 | 12

--- case: all columns of queries with stars of their own, in parentheses that are matched by names
--- covers: Q2 t.* of a join in parentheses that matches columns by name
WITH w AS (SELECT * FROM customers)
SELECT o.amount, c.*, r.* EXCEPT (name) FROM orders AS o LEFT JOIN ((SELECT x.*, 1 AS one FROM w AS x) AS c JOIN (SELECT * FROM regions) AS r ON c.region = r.name) USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
INSERT INTO customers VALUES (1, 'x'), (2, 'y');
INSERT INTO regions VALUES ('x', 'here');
--- change
INSERT INTO regions VALUES ('y', 'there');
UPDATE customers SET region = 'z' WHERE id = 1;
--- delta
-- -1 | 5 | 1 | x | 1 | here
-- +1 | 5 | NULL | NULL | NULL | NULL
-- -1 | 6 | NULL | NULL | NULL | NULL
-- +1 | 6 | 2 | y | 1 | there

--- case: all columns of a LATERAL query in parentheses that are matched by names
--- covers: Q2 t.* of a join in parentheses that matches columns by name
SELECT o.amount, t.* FROM orders AS o JOIN (customers AS c JOIN LATERAL (SELECT c.id + 1 AS y, c.region AS z) AS t ON TRUE) USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5);
INSERT INTO customers VALUES (1, 'a');
--- change
UPDATE customers SET region = 'b';
--- delta
-- -1 | 5 | 2 | a
-- +1 | 5 | 2 | b

--- case: all columns of a table function and of VALUES in parentheses that are matched by names
--- covers: Q2 t.* of a join in parentheses that matches columns by name
--- spark: sqlglot writes something that DuckDB cannot read
SELECT o.amount, t.*, v.* FROM orders AS o LEFT JOIN (customers AS c JOIN explode(array(7, 8)) AS t JOIN (VALUES (1, 'q')) AS v(n, s) ON c.id = v.n) USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5);
--- change
INSERT INTO customers VALUES (1, 'a');
--- delta
-- -1 | 5 | NULL | NULL | NULL
-- +1 | 5 | 7 | 1 | q
-- +1 | 5 | 8 | 1 | q
