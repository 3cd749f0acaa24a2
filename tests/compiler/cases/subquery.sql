--- case: an aggregate of an aggregate
--- covers: Q12 an aggregate of an aggregate
SELECT n, COUNT(*) AS customers FROM (SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer) AS t GROUP BY n;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
--- change
INSERT INTO orders VALUES (12, 2, 5);
--- delta
-- -1 | 1 | 2
-- +1 | 1 | 1
-- +1 | 2 | 1

--- case: the most of sums goes down when its group shrinks
--- covers: Q12 an aggregate of an aggregate; Q6 MAX that is lost
SELECT MAX(total) AS most FROM (SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer) AS t;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5), (12, 2, 7);
--- change
DELETE FROM orders WHERE id = 10;
--- delta
-- -1 | 10
-- +1 | 7

--- case: a filter on a measure of a subquery
--- covers: Q12 a subquery in FROM; Q4 HAVING
SELECT customer, total FROM (SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer) AS t WHERE total > 5;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 1);
--- delta
-- +1 | 1 | 6

--- case: a total over nothing inside a subquery keeps its row
--- covers: Q12 a subquery in FROM; Q28 an empty input
SELECT n + 1 AS next FROM (SELECT COUNT(*) AS n FROM orders) AS t;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
DELETE FROM orders;
--- delta
-- -1 | 2
-- +1 | 1

--- case: a join with a total over nothing
--- covers: Q12 a subquery in FROM; Q28 an empty input
SELECT c.id, t.n, t.total FROM customers AS c CROSS JOIN (SELECT COUNT(*) AS n, SUM(amount) AS total FROM orders) AS t;
--- before
INSERT INTO customers VALUES (1, 'north');
--- change
INSERT INTO orders VALUES (10, 1, 5);
INSERT INTO customers VALUES (2, 'south');
--- delta
-- -1 | 1 | 0 | NULL
-- +1 | 1 | 1 | 5
-- +1 | 2 | 1 | 5

--- case: a left join with a group that vanishes
--- covers: Q12 a subquery in FROM; Q2 LEFT JOIN
SELECT c.id, t.n FROM customers AS c LEFT JOIN (SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer HAVING COUNT(*) > 1) AS t ON t.customer = c.id;
--- before
INSERT INTO customers VALUES (1, 'north');
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5);
--- change
DELETE FROM orders WHERE id = 10;
--- delta
-- -1 | 1 | 2
-- +1 | 1 | NULL

--- case: columns renamed by the alias of a subquery
--- covers: Q12 columns renamed by an alias
SELECT t.a, t.b FROM (SELECT id, amount FROM orders) AS t(a, b) WHERE t.b > 1;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
UPDATE orders SET amount = 6;
--- delta
-- -1 | 10 | 5
-- +1 | 10 | 6

--- case: groups over renamed columns keep their hidden state
--- covers: Q12 columns renamed by an alias
SELECT t.a, AVG(t.b) AS mean FROM (SELECT customer, amount FROM orders) AS t(a, b) GROUP BY t.a;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 6);
--- delta
-- -1 | 1 | 5
-- +1 | 1 | 5.5

--- case: subqueries four deep
--- covers: Q12 a subquery in FROM
SELECT a FROM (SELECT a FROM (SELECT b AS a FROM (SELECT id AS b FROM orders WHERE amount > 1) AS x WHERE b > 1) AS y WHERE a > 2) AS z;
--- before
INSERT INTO orders VALUES (1, 1, 5);
--- change
UPDATE orders SET id = 3;
--- delta
-- +1 | 3

--- case: a subquery without an alias
--- covers: Q12 a subquery without an alias
SELECT id FROM (SELECT id, amount FROM orders) WHERE amount > 1;
--- before
--- change
INSERT INTO orders VALUES (1, 1, 5);
--- delta
-- +1 | 1

--- case: nested counts count groups, not rows
--- covers: Q12 an aggregate of an aggregate
SELECT COUNT(*) AS groups_, SUM(n) AS rows_ FROM (SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer) AS t;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5);
--- change
INSERT INTO orders VALUES (12, 2, 5), (13, 2, 5);
--- delta
-- -1 | 1 | 2
-- +1 | 2 | 4

--- case: a value change below an aggregate is one row out and one row in
--- covers: Q12 an aggregate of an aggregate
SELECT total, COUNT(*) AS n FROM (SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer) AS t GROUP BY total;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
--- change
UPDATE orders SET amount = 6 WHERE id = 11;
--- delta
-- -1 | 5 | 2
-- +1 | 5 | 1
-- +1 | 6 | 1

--- case: groups over a subquery without an alias keep their hidden state
--- covers: Q12 a subquery without an alias
SELECT SUM(x) AS total FROM (SELECT customer, amount AS x FROM orders WHERE amount > 1), customers WHERE id = 1 GROUP BY customer;
--- before
INSERT INTO customers VALUES (1, 'north');
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 6), (12, 2, 7);
--- delta
-- +1 | 11
-- -1 | 5
-- +1 | 7

--- case: columns renamed by the alias of a table
--- covers: Q12 columns renamed by an alias
SELECT o.b, SUM(c) AS total FROM orders AS o(a, b, c) WHERE a > 1 GROUP BY o.b;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 6);
--- delta
-- -1 | 1 | 5
-- +1 | 1 | 11

--- case: a table as a query, an operand, and a definition
--- covers: Q12 TABLE as a query
WITH c AS (TABLE customers) SELECT id FROM (TABLE orders) AS t WHERE EXISTS (TABLE regions) UNION ALL SELECT id FROM (TABLE c EXCEPT TABLE customers) AS e;
--- before
INSERT INTO orders VALUES (10, 1, 5);
INSERT INTO customers VALUES (1, 'north');
--- change
INSERT INTO regions VALUES ('north', 'here');
INSERT INTO orders VALUES (11, 1, 5);
--- delta
-- +1 | 10
-- +1 | 11

--- case: a table is the whole query
--- covers: Q12 TABLE as a query
TABLE regions UNION SELECT region, region FROM customers;
--- before
INSERT INTO customers VALUES (1, 'north');
--- change
INSERT INTO regions VALUES ('north', 'north'), ('2', 'south');
--- delta
-- +1 | 2 | south

--- case: the first rows of a table that is the whole query
--- covers: Q12 TABLE as a query; Q21 ORDER BY with LIMIT
TABLE orders ORDER BY amount DESC LIMIT 1;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 6);
--- delta
-- -1 | 10 | 1 | 5
-- +1 | 11 | 1 | 6
