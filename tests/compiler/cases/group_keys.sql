--- case: groups by the answer of a scalar subquery
--- covers: Q4 a subquery in a key; Q14 a scalar subquery in GROUP BY
SELECT (SELECT MAX(c.region) FROM customers AS c WHERE c.id = o.customer) AS region, SUM(o.amount) AS total FROM orders AS o GROUP BY (SELECT MAX(c.region) FROM customers AS c WHERE c.id = o.customer);
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 6), (12, NULL, 7);
--- change
UPDATE customers SET region = 'west' WHERE id = 2;
INSERT INTO orders VALUES (13, 1, 1);
--- delta
-- -1 | north | 5
-- +1 | north | 6
-- -1 | south | 6
-- +1 | west | 6

--- case: groups by a subquery under its output's name
--- covers: Q4 a subquery in a key
SELECT COALESCE((SELECT MAX(c.region) FROM customers AS c WHERE c.id = o.customer), 'none') AS region, COUNT(*) AS n FROM orders AS o GROUP BY region HAVING region <> 'west';
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 6), (12, NULL, 7);
--- change
INSERT INTO customers VALUES (2, 'west');
INSERT INTO orders VALUES (13, 3, 1);
--- delta
-- -1 | none | 1
-- +1 | none | 2
-- -1 | south | 1

--- case: GROUP BY ALL with a subquery among the outputs
--- covers: Q4 a subquery in a key; Q4 GROUP BY ALL
SELECT customer, (SELECT MAX(id) FROM customers) AS last, SUM(amount) AS total FROM orders GROUP BY ALL;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 6), (12, NULL, 7);
--- change
INSERT INTO customers VALUES (4, 'east');
DELETE FROM orders WHERE id = 10;
--- delta
-- -1 | 1 | 2 | 5
-- -1 | 2 | 2 | 6
-- +1 | 2 | 4 | 6
-- -1 | NULL | 2 | 7
-- +1 | NULL | 4 | 7

--- case: groups by IN of a subquery
--- covers: Q4 a subquery in a key; Q13 IN
SELECT customer IN (SELECT id FROM customers) AS known, SUM(amount) AS total FROM orders GROUP BY customer IN (SELECT id FROM customers);
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 6), (12, NULL, 7);
--- change
DELETE FROM customers WHERE id = 1;
INSERT INTO orders VALUES (13, 1, 1);
--- delta
-- +1 | False | 6
-- -1 | True | 11
-- +1 | True | 6
--- delta of Spark
-- +1 | False | 13
-- -1 | False | 7
-- -1 | True | 11
-- +1 | True | 6

--- case: groups by NOT EXISTS, by its number
--- covers: Q4 a subquery in a key; Q13 NOT EXISTS
SELECT NOT EXISTS (SELECT 1 FROM customers AS c WHERE c.id = o.customer) AS unknown, COUNT(*) AS n FROM orders AS o GROUP BY 1;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 6), (12, NULL, 7);
--- change
DELETE FROM customers WHERE id = 1;
INSERT INTO customers VALUES (3, 'east');
--- delta
-- +1 | False | 1
-- -1 | False | 2
-- -1 | True | 1
-- +1 | True | 2

--- case: a subquery in a key that is not returned
--- covers: Q4 a subquery in a key
SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer, amount > (SELECT AVG(id) FROM customers);
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 6), (12, NULL, 7);
--- change
INSERT INTO customers VALUES (40, 'east');
INSERT INTO orders VALUES (13, 1, 3);
--- delta
-- -1 | 1 | 5
-- +1 | 1 | 8

--- case: ROLLUP over a subquery
--- covers: Q9 a subquery in a key of ROLLUP
SELECT customer + (SELECT MAX(id) FROM customers) AS later, SUM(amount) AS total, GROUPING(customer + (SELECT MAX(id) FROM customers)) AS g FROM orders GROUP BY ROLLUP (customer + (SELECT MAX(id) FROM customers)) HAVING SUM(amount) > 0;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 6), (12, NULL, 7);
--- change
DELETE FROM customers WHERE id = 2;
--- delta
-- +1 | 2 | 5 | 0
-- -1 | 3 | 5 | 0
-- +1 | 3 | 6 | 0
-- -1 | 4 | 6 | 0

--- case: a window over groups by a subquery
--- covers: Q4 a subquery in a key
SELECT (SELECT MAX(c.id) FROM customers AS c) + customer AS k, RANK() OVER (ORDER BY SUM(amount)) AS r FROM orders GROUP BY k;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 6), (12, NULL, 7);
--- change
INSERT INTO customers VALUES (4, 'east');
UPDATE orders SET amount = 9 WHERE id = 10;
--- delta
-- -1 | 3 | 1
-- -1 | 4 | 2
-- +1 | 5 | 3
-- +1 | 6 | 1
-- +1 | NULL | 2
-- -1 | NULL | 3


--- case: a key with its table, and without
--- covers: Q4 an expression over keys
SELECT o.customer, COUNT(*) AS n FROM orders AS o GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 6), (12, NULL, 7);
--- change
INSERT INTO orders VALUES (13, 1, 1);
UPDATE orders SET customer = 3 WHERE id = 11;
--- delta
-- -1 | 1 | 1
-- +1 | 1 | 2
-- -1 | 2 | 1
-- +1 | 3 | 1

--- case: a key whose operands are turned around
--- covers: Q4 an expression over keys
--- spark: DuckDB does not take it for the key
SELECT 1 + customer AS k, SUM(amount) AS total FROM orders GROUP BY (customer + 1) HAVING 1 + customer > 1;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 6), (12, NULL, 7);
--- change
INSERT INTO orders VALUES (13, 1, 1);
UPDATE orders SET customer = 3 WHERE id = 11;
--- delta
-- -1 | 2 | 5
-- +1 | 2 | 6
-- -1 | 3 | 6
-- +1 | 4 | 6

--- case: a key inside an expression
--- covers: Q4 an expression over keys
SELECT customer + 1 AS k, (customer + 1) * 2 AS twice, COUNT(*) AS n FROM orders GROUP BY k;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 6), (12, NULL, 7);
--- change
INSERT INTO orders VALUES (13, 1, 1);
UPDATE orders SET customer = 3 WHERE id = 11;
--- delta
-- -1 | 2 | 4 | 1
-- +1 | 2 | 4 | 2
-- -1 | 3 | 6 | 1
-- +1 | 4 | 8 | 1

--- case: a comparison that is turned around is the key
--- covers: Q4 an expression over keys
--- spark: DuckDB does not take it for the key
SELECT CASE WHEN 1 < customer THEN 'many' END AS k, COUNT(*) AS n FROM orders GROUP BY customer > 1;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 6), (12, NULL, 7);
--- change
INSERT INTO orders VALUES (13, 1, 1);
UPDATE orders SET customer = 3 WHERE id = 11;
--- delta
-- -1 | NULL | 1
-- +1 | NULL | 2

--- case: a sum of three of which two are the key
--- covers: Q4 an expression over keys
SELECT customer + amount + 1 AS k, COUNT(*) AS n FROM orders GROUP BY customer + amount;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 6), (12, NULL, 7);
--- change
INSERT INTO orders VALUES (13, 1, 1);
UPDATE orders SET customer = 3 WHERE id = 11;
--- delta
-- +1 | 10 | 1
-- +1 | 3 | 1
-- -1 | 9 | 1

--- case: an output of another one, over groups
--- covers: Q4 an expression over keys
SELECT customer AS k, SUM(amount) AS s, s + k AS t FROM orders GROUP BY k;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 6), (12, NULL, 7);
--- change
INSERT INTO orders VALUES (13, 1, 1);
UPDATE orders SET customer = 3 WHERE id = 11;
--- delta
-- -1 | 1 | 5 | 6
-- +1 | 1 | 6 | 7
-- -1 | 2 | 6 | 8
-- +1 | 3 | 6 | 9

--- case: a field of a struct that is a key
--- covers: Q4 an expression over keys
SELECT place.x AS x, COUNT(*) AS n FROM visits GROUP BY place;
--- before
INSERT INTO visits VALUES (1, NULL, NULL, named_struct('x', 1, 'y', 'a'));
--- change
INSERT INTO visits VALUES (2, NULL, NULL, named_struct('x', 1, 'y', 'a')), (3, NULL, NULL, NULL);
--- delta
-- -1 | 1 | 1
-- +1 | 1 | 2
-- +1 | NULL | 1

--- case: a key in another letter case, in every clause
--- covers: Q4 an expression over keys
SELECT UPPER(Region) AS r, COUNT(*) AS n FROM customers GROUP BY upper(REGION) HAVING Upper(region) <> 'X' ORDER BY UPPER(region) LIMIT 2;
--- before
INSERT INTO customers VALUES (1, 'a'), (2, 'b'), (3, 'x');
--- change
INSERT INTO customers VALUES (4, 'A');
DELETE FROM customers WHERE id = 2;
--- delta
-- -1 | A | 1
-- +1 | A | 2
-- -1 | B | 1

--- case: a constant beside a key
--- covers: Q4 an expression over keys
SELECT customer, COUNT(*) AS n FROM orders GROUP BY 'x', customer;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 6), (12, NULL, 7);
--- change
INSERT INTO orders VALUES (13, 1, 1);
UPDATE orders SET customer = 3 WHERE id = 11;
--- delta
-- -1 | 1 | 1
-- +1 | 1 | 2
-- -1 | 2 | 1
-- +1 | 3 | 1

--- case: a column that is called all is the key
--- covers: Q4 a column that is called all
--- spark: DuckDB groups by all outputs
SELECT t.`all`, COUNT(*) AS n FROM (SELECT customer AS `all`, amount AS v FROM orders) AS t GROUP BY all;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 5);
--- change
INSERT INTO orders VALUES (4, 2, 6);
DELETE FROM orders WHERE id = 1;
--- delta
-- +1 | 1 | 1
-- -1 | 1 | 2
-- -1 | 2 | 1
-- +1 | 2 | 2

--- case: a column that is called all beside others
--- covers: Q4 a column that is called all
--- spark: DuckDB groups by all outputs
SELECT `all`, v, COUNT(*) AS n FROM (SELECT customer AS `all`, amount % 5 AS v FROM orders) AS t GROUP BY all, v;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 5);
--- change
INSERT INTO orders VALUES (4, 2, 6);
DELETE FROM orders WHERE id = 1;
--- delta
-- -1 | 1 | 0 | 1
-- +1 | 2 | 1 | 1

--- case: a column that is called all and is not returned
--- covers: Q4 a column that is called all
--- spark: DuckDB groups by all outputs
SELECT SUM(v) AS s FROM (SELECT customer AS `all`, amount AS v FROM orders) AS t GROUP BY ALL HAVING all > 0;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 5);
--- change
INSERT INTO orders VALUES (4, 2, 6);
DELETE FROM orders WHERE id = 1;
--- delta
-- -1 | 5
-- +1 | 6

--- case: an output that is called all is the key
--- covers: Q4 a column that is called all
SELECT customer AS `all`, COUNT(*) AS n, MAX(amount) AS m FROM orders GROUP BY ALL;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 5);
--- change
INSERT INTO orders VALUES (4, 2, 6);
DELETE FROM orders WHERE id = 1;
--- delta
-- +1 | 1 | 1 | 6
-- -1 | 1 | 2 | 6
-- -1 | 2 | 1 | 5
-- +1 | 2 | 2 | 6

--- case: a column called all begins the outputs
--- covers: Q4 a column that is called all
--- spark: DuckDB reads SELECT all as SELECT ALL
SELECT all, n FROM (SELECT customer AS all, COUNT(*) AS n FROM orders GROUP BY customer);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
--- delta
-- +1 | 2 | 1
-- -1 | 3 | 1
-- +1 | 6 | 1
