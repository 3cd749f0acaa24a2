--- case: a common table expression used once
--- covers: Q17 a CTE
WITH large AS (SELECT id, customer FROM orders WHERE amount > 5) SELECT id FROM large WHERE customer = 1;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
UPDATE orders SET amount = 6;
--- delta
-- +1 | 10

--- case: a chain of common table expressions
--- covers: Q17 a chain of CTEs
WITH a AS (SELECT customer, amount FROM orders WHERE amount > 0), b AS (SELECT customer, SUM(amount) AS total FROM a GROUP BY customer), c AS (SELECT customer, total FROM b WHERE total > 5) SELECT customer, total * 2 AS twice FROM c;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 2), (12, 1, -9);
--- delta
-- +1 | 1 | 14

--- case: a common table expression joined to itself
--- covers: Q17 a CTE read twice
WITH t AS (SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer) SELECT a.customer, b.customer AS other FROM t AS a JOIN t AS b ON a.n = b.n AND a.customer < b.customer;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
--- change
INSERT INTO orders VALUES (12, 1, 5), (13, 3, 5);
--- delta
-- -1 | 1 | 2
-- +1 | 2 | 3

--- case: a common table expression in many places
--- covers: Q17 a CTE read twice
WITH t AS (SELECT id, region FROM customers WHERE id > 0) SELECT t.id, t.region FROM t UNION ALL SELECT a.id, b.region FROM t AS a JOIN t AS b ON a.region = b.region UNION ALL SELECT COUNT(*), MAX(region) FROM t;
--- before
INSERT INTO customers VALUES (1, 'north');
--- change
INSERT INTO customers VALUES (2, 'north');
--- delta
-- +4 | 2 | north

--- case: a common table expression with renamed columns
--- covers: Q17 a CTE with renamed columns; Q12 columns renamed by an alias
WITH t(a, b) AS (SELECT customer, SUM(amount) FROM orders GROUP BY customer) SELECT a, b FROM t WHERE b > 1;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 5);
--- delta
-- -1 | 1 | 5
-- +1 | 1 | 10

--- case: a common table expression inside a subquery
--- covers: Q17 a CTE in a subquery
SELECT id FROM (WITH t AS (SELECT id FROM orders WHERE amount > 1) SELECT id FROM t) AS s;
--- before
--- change
INSERT INTO orders VALUES (11, 1, 5);
--- delta
-- +1 | 11

--- case: a common table expression that hides a table of its name
--- covers: Q17 a CTE with the name of a table
WITH orders AS (SELECT id, amount FROM orders WHERE amount > 5) SELECT id, SUM(amount) AS total FROM orders GROUP BY id;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 6);
--- delta
-- +1 | 11 | 6

--- case: groups over a common table expression keep their hidden state
--- covers: Q17 groups over a CTE
WITH t AS (SELECT customer AS who, amount AS what FROM orders) SELECT who, AVG(what) AS mean, MAX(what) AS most FROM t GROUP BY who;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 7);
--- change
DELETE FROM orders WHERE id = 11;
--- delta
-- -1 | 1 | 6 | 7
-- +1 | 1 | 5 | 5

--- case: a common table expression that nobody reads
--- covers: Q17 a CTE that nobody reads
WITH t AS (SELECT id FROM customers) SELECT id FROM orders;
--- before
--- change
INSERT INTO orders VALUES (11, 1, 5);
INSERT INTO customers VALUES (1, 'north');
--- delta
-- +1 | 11

--- case: the same table under a common table expression and beside it
--- covers: Q17 a CTE beside its table
WITH sums AS (SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer) SELECT o.id, o.amount, s.total FROM orders AS o LEFT JOIN sums AS s ON s.customer = o.customer;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 7);
--- delta
-- -1 | 10 | 5 | 5
-- +1 | 10 | 5 | 12
-- +1 | 11 | 7 | 12

--- case: the first rows of a WITH whose columns have other names
--- covers: Q17 a CTE
WITH t (k) AS ((SELECT id AS c FROM orders ORDER BY amount DESC, c LIMIT 1) UNION ALL SELECT id FROM customers) SELECT k FROM t;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 6);
--- delta
-- -1 | 10
-- +1 | 11

--- case: a definition inside of a query hides that of its name around it
--- covers: Q17 a CTE of a name that is taken
WITH a AS (SELECT id FROM orders) SELECT a.id, t.id AS other FROM (WITH A AS (SELECT id FROM customers) SELECT a.id FROM a) AS t JOIN a ON a.id >= t.id;
--- before
INSERT INTO orders VALUES (10, 1, 5);
INSERT INTO customers VALUES (1, 'north');
--- change
INSERT INTO orders VALUES (2, 1, 6);
INSERT INTO customers VALUES (4, 'south');
--- delta
-- +1 | 10 | 4
-- +1 | 2 | 1

--- case: definitions of one name in two queries beside each other
--- covers: Q17 a CTE of a name that is taken
SELECT x.id FROM (WITH t AS (SELECT id FROM orders) SELECT * FROM t) AS x JOIN (WITH t AS (SELECT customer FROM orders) SELECT t.* FROM t) AS y ON x.id = y.customer;
--- before
INSERT INTO orders VALUES (1, 2, 5);
--- change
INSERT INTO orders VALUES (2, 1, 6);
--- delta
-- +1 | 1
-- +1 | 2

--- case: a definition that reads the one it hides
--- covers: Q17 a CTE of a name that is taken
WITH a AS (SELECT id, amount FROM orders), b AS (WITH a AS (SELECT * FROM a WHERE amount > 5) SELECT id FROM a) SELECT id FROM a WHERE id NOT IN (SELECT id FROM b);
--- before
INSERT INTO orders VALUES (1, 2, 5), (2, 2, 6);
--- change
UPDATE orders SET amount = 11 - amount;
--- delta
-- +1 | 2
-- -1 | 1

--- case: a definition inside of a subquery that has the name of one around it
--- covers: Q17 a CTE of a name that is taken
WITH a AS (SELECT id FROM orders) SELECT id FROM customers AS c WHERE EXISTS (WITH a AS (SELECT customer FROM orders) SELECT 1 FROM a WHERE a.customer = c.id) AND id IN (SELECT id FROM a);
--- before
INSERT INTO orders VALUES (1, 2, 5), (3, 3, 6);
INSERT INTO customers VALUES (1, 'north'), (2, 'north'), (3, 'south');
--- change
INSERT INTO orders VALUES (2, 1, 6);
--- delta
-- +1 | 1
-- +1 | 2

--- case: definitions without AS
--- covers: Q17 definitions without AS
--- spark: DuckDB needs AS
WITH big (SELECT id, customer, amount FROM orders WHERE amount > 1), named(k, n) (SELECT customer, COUNT(*) FROM big GROUP BY customer) SELECT k, n FROM named;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 1);
--- change
INSERT INTO orders VALUES (3, 1, 7), (4, 2, 2);
--- delta
-- -1 | 1 | 1
-- +1 | 1 | 2
-- +1 | 2 | 1

--- case: a recursion without AS, with a number of rounds
--- covers: Q18 definitions without AS
--- spark: DuckDB needs AS
WITH RECURSIVE r(n) MAX RECURSION LEVEL 9 (SELECT id FROM orders UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r;
--- before
INSERT INTO orders VALUES (2, 1, 5);
--- change
INSERT INTO orders VALUES (1, 1, 7);
--- delta
-- +1 | 1
-- +1 | 2
-- +1 | 3
