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
