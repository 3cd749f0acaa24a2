-- What a name means: a column of FROM, an output, a field of a struct, a column of the query around.

--- case: the columns of a definition have other names where it is used
--- covers: Q17 column names after the alias of a definition
WITH pairs AS (SELECT id, customer FROM orders) SELECT customer FROM pairs AS p (customer, id);
--- before
INSERT INTO orders VALUES (1, 10, 5);
--- change
INSERT INTO orders VALUES (2, 20, 5);
--- delta
-- +1 | 2

--- case: a definition is joined with itself, each time with other names
--- covers: Q17 column names after the alias of a definition
WITH pairs AS (SELECT id, customer FROM orders)
SELECT p.a, q.b FROM pairs AS p (a, b) JOIN pairs AS q (b, a) ON p.b = q.b;
--- before
INSERT INTO orders VALUES (1, 2, 5), (2, 3, 5);
--- change
INSERT INTO orders VALUES (3, 1, 5);
--- delta
-- +1 | 2 | 3
-- +1 | 3 | 1

--- case: NATURAL JOIN with a left side that has the name twice
--- covers: Q2 NATURAL JOIN after a join with a repeated name
--- spark: DuckDB refuses the name as ambiguous; Spark takes the first column
SELECT o.id, p.id AS other, d.name
FROM orders AS o JOIN orders AS p ON o.id <= p.id
NATURAL JOIN (SELECT id, region AS name FROM customers) AS d;
--- before
INSERT INTO orders VALUES (1, 10, 5), (2, 10, 5);
INSERT INTO customers VALUES (1, 'a');
--- change
INSERT INTO customers VALUES (2, 'b');
--- delta
-- +1 | 2 | 2 | b

--- case: HAVING compares with the name of a constant
--- covers: Q4 HAVING by an alias
SELECT customer, COUNT(*) AS n, 2 AS least FROM orders GROUP BY customer HAVING n >= least;
--- before
INSERT INTO orders VALUES (1, 10, 5), (2, 20, 5);
--- change
INSERT INTO orders VALUES (3, 10, 5);
--- delta
-- +1 | 10 | 2 | 2

--- case: GROUP BY the name of a field
--- covers: Q4 GROUP BY an alias
--- spark: to DuckDB, the name of a field is no name of an output
SELECT place.x, COUNT(*) AS n FROM visits GROUP BY x;
--- before
INSERT INTO visits VALUES (1, NULL, NULL, named_struct('x', 1, 'y', 'a'));
--- change
INSERT INTO visits VALUES (2, NULL, NULL, named_struct('x', 1, 'y', 'b'));
--- delta
-- -1 | 1 | 1
-- +1 | 1 | 2

--- case: the number of a constant in ROLLUP
--- covers: Q9 the number of a column in ROLLUP
SELECT 2 AS two, COUNT(*) AS n FROM orders GROUP BY ROLLUP (1);
--- before
INSERT INTO orders VALUES (1, 10, 5);
--- change
INSERT INTO orders VALUES (2, 10, 5);
--- delta
-- -1 | 2 | 1
-- +1 | 2 | 2
-- -1 | NULL | 1
-- +1 | NULL | 2

--- case: a column that a subquery selects twice
--- covers: Q12 columns of one name in a subquery
SELECT t.id, t.amount FROM (SELECT o.id, o.* FROM orders AS o) AS t;
--- before
INSERT INTO orders VALUES (1, 10, 5);
--- change
INSERT INTO orders VALUES (2, 10, 6);
--- delta
-- +1 | 2 | 6

--- case: a table has an alias that a SEMI JOIN before it had
--- covers: Q2 LEFT SEMI JOIN before a table of the same alias
SELECT d.amount FROM customers AS c LEFT SEMI JOIN orders AS d ON d.customer = c.id
JOIN orders AS d ON d.id = c.id;
--- before
INSERT INTO customers VALUES (1, 'a');
INSERT INTO orders VALUES (1, 2, 5);
--- change
INSERT INTO orders VALUES (2, 1, 6);
--- delta
-- +1 | 5

--- case: what IN compares is a subquery
--- covers: Q13 a subquery on the left of IN
SELECT c.id FROM customers AS c
WHERE (SELECT MAX(o.amount) FROM orders AS o WHERE o.customer = c.id) IN (SELECT p.id FROM orders AS p);
--- before
INSERT INTO customers VALUES (1, 'a'), (2, 'b');
INSERT INTO orders VALUES (5, 1, 5), (6, 2, 7);
--- change
INSERT INTO orders VALUES (7, 1, 9);
--- delta
-- -1 | 1
-- +1 | 2

--- case: what NOT IN compares is a subquery, in a list
--- covers: Q13 a subquery on the left of IN
SELECT c.id, (SELECT MAX(o.amount) FROM orders AS o WHERE o.customer = c.id) NOT IN
(SELECT p.id FROM orders AS p) AS missing FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'a'), (2, 'b'), (3, 'c');
INSERT INTO orders VALUES (5, 1, 5), (6, 2, 7);
--- change
INSERT INTO orders VALUES (7, 1, 9);
--- delta
-- -1 | 1 | False
-- +1 | 1 | True
-- -1 | 2 | True
-- +1 | 2 | False

--- case: a field is called as a merged column of a table
--- covers: Q2 a join by names after a column of structs
--- spark: DuckDB finds the column of the table first
SELECT c.id AS field, region
FROM (SELECT id, named_struct('id', 70 + id) AS c FROM orders) AS o JOIN customers AS c USING (id);
--- before
INSERT INTO orders VALUES (1, 10, 5), (2, 10, 5);
INSERT INTO customers VALUES (1, 'a');
--- change
INSERT INTO customers VALUES (2, 'b');
--- delta
-- +1 | 72 | b

--- case: HAVING takes a column that an output is called like, inside of an aggregate of any kind
--- covers: Q4 HAVING by an alias
SELECT id AS amount, customer FROM orders GROUP BY id, customer HAVING max_by(amount, customer) > 6;
--- before
INSERT INTO orders VALUES (9, 1, 5);
--- change
INSERT INTO orders VALUES (2, 1, 7);
--- delta
-- +1 | 2 | 1

--- case: a star without a column of a table that is called as a column
--- covers: Q1 names of columns
SELECT amount.* EXCEPT (amount.id) FROM orders AS amount;
--- before
INSERT INTO orders VALUES (1, 1, 5);
--- change
UPDATE orders SET amount = 6;
--- delta
-- -1 | 1 | 5
-- +1 | 1 | 6

--- case: NATURAL of a table that has its column twice
--- covers: Q1 names of columns
SELECT id, amount, region FROM (SELECT o.*, id AS one, o.id FROM orders AS o) AS p NATURAL RIGHT JOIN customers;
--- before
INSERT INTO orders VALUES (1, 1, 5);
INSERT INTO customers VALUES (1, 'x');
--- change
UPDATE orders SET amount = 6;
INSERT INTO customers VALUES (2, 'y');
--- delta
-- -1 | 1 | 5 | x
-- +1 | 1 | 6 | x
-- +1 | 2 | NULL | y

--- case: a column selected twice under two names after an alias
--- covers: Q1 names of columns
SELECT p.* EXCEPT (a) FROM (SELECT id, amount, amount FROM orders) AS p (k, a, b);
--- before
INSERT INTO orders VALUES (1, 1, 5);
--- change
UPDATE orders SET amount = 6;
--- delta
-- -1 | 1 | 5
-- +1 | 1 | 6

--- case: a definition and a relation with the names of aggregates
--- covers: Q17 a CTE with renamed columns; Q12 columns renamed by an alias
WITH first (a) AS (SELECT id FROM orders) SELECT mode.b, MAX(a) AS last FROM first JOIN (SELECT id FROM customers) AS mode (b) ON a <= b GROUP BY mode.b;
--- before
INSERT INTO orders VALUES (1, 1, 5);
INSERT INTO customers VALUES (9, 'x');
--- change
INSERT INTO orders VALUES (2, 1, 5);
--- delta
-- -1 | 9 | 1
-- +1 | 9 | 2
