--- case: a condition on the row inside a derived table
--- covers: Q14 a correlated scalar subquery over a FROM that mentions the row
SELECT c.id, (SELECT MAX(q.amount) FROM (SELECT o.id, o.amount FROM orders AS o WHERE o.customer = c.id) AS q) AS most FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, 'north'), (NULL, NULL);
INSERT INTO orders VALUES (1, 1, 5), (11, 1, 7), (3, 1, 5), (13, 2, 3), (14, NULL, 9);
--- change
INSERT INTO orders VALUES (2, 2, 3), (16, 3, 4), (3, 1, 8);
DELETE FROM orders WHERE id = 11;
UPDATE customers SET region = 'north' WHERE id = 2;
--- delta
-- -1 | 1 | 7
-- +1 | 1 | 8
-- +1 | 3 | 4
-- -1 | 3 | NULL

--- case: the groups of a derived table that mentions the row
--- covers: Q14 a correlated scalar subquery over a FROM that mentions the row
SELECT c.id, (SELECT SUM(q.n) FROM (SELECT o.amount, COUNT(*) AS n FROM orders AS o WHERE o.customer < c.id GROUP BY o.amount HAVING COUNT(*) < c.id) AS q) AS n FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, 'north'), (NULL, NULL);
INSERT INTO orders VALUES (1, 1, 5), (11, 1, 7), (3, 1, 5), (13, 2, 3), (14, NULL, 9);
--- change
INSERT INTO orders VALUES (2, 2, 3), (16, 3, 4), (3, 1, 8);
DELETE FROM orders WHERE id = 11;
UPDATE customers SET region = 'north' WHERE id = 2;
--- delta
-- -1 | 3 | 4
-- +1 | 3 | 5

--- case: the first rows of a derived table that mentions the row
--- covers: Q14 a correlated scalar subquery over a FROM that mentions the row
SELECT c.id, (SELECT SUM(q.amount) FROM (SELECT o.amount FROM orders AS o WHERE o.customer = c.id ORDER BY o.amount DESC LIMIT 2) AS q) AS most FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, 'north'), (NULL, NULL);
INSERT INTO orders VALUES (1, 1, 5), (11, 1, 7), (3, 1, 5), (13, 2, 3), (14, NULL, 9);
--- change
INSERT INTO orders VALUES (2, 2, 3), (16, 3, 4), (3, 1, 8);
DELETE FROM orders WHERE id = 11;
UPDATE customers SET region = 'north' WHERE id = 2;
--- delta
-- -1 | 1 | 12
-- +1 | 1 | 13
-- -1 | 2 | 3
-- +1 | 2 | 6
-- +1 | 3 | 4
-- -1 | 3 | NULL

--- case: numbered rows of a derived table that mentions the row
--- covers: Q14 a correlated scalar subquery over a FROM that mentions the row
SELECT c.id, (SELECT SUM(q.amount) FROM (SELECT DISTINCT o.amount, DENSE_RANK() OVER (ORDER BY o.amount) AS place FROM orders AS o WHERE o.customer = c.id) AS q WHERE q.place < 3) AS least FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, 'north'), (NULL, NULL);
INSERT INTO orders VALUES (1, 1, 5), (11, 1, 7), (3, 1, 5), (13, 2, 3), (14, NULL, 9);
--- change
INSERT INTO orders VALUES (2, 2, 3), (16, 3, 4), (3, 1, 8);
DELETE FROM orders WHERE id = 11;
UPDATE customers SET region = 'north' WHERE id = 2;
--- delta
-- -1 | 1 | 12
-- +1 | 1 | 13
-- +1 | 3 | 4
-- -1 | 3 | NULL

--- case: a derived table with a value of the row, inside another
--- covers: Q14 a correlated scalar subquery over a FROM that mentions the row
SELECT c.id, (SELECT SUM(r.above) FROM (SELECT q.above FROM (SELECT o.amount + c.id AS above, o.id FROM orders AS o) AS q WHERE q.id > c.id) AS r) AS most FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, 'north'), (NULL, NULL);
INSERT INTO orders VALUES (1, 1, 5), (11, 1, 7), (3, 1, 5), (13, 2, 3), (14, NULL, 9);
--- change
INSERT INTO orders VALUES (2, 2, 3), (16, 3, 4), (3, 1, 8);
DELETE FROM orders WHERE id = 11;
UPDATE customers SET region = 'north' WHERE id = 2;
--- delta
-- -1 | 1 | 28
-- +1 | 1 | 38
-- -1 | 2 | 32
-- +1 | 2 | 39
-- +1 | 3 | 25
-- -1 | 3 | 28

--- case: a derived table that mentions the row, joined with a table
--- covers: Q14 a correlated scalar subquery over a FROM that mentions the row
SELECT c.id, (SELECT COUNT(r.country) FROM (SELECT d.region FROM customers AS d WHERE d.id = c.id) AS q JOIN regions AS r ON r.name = q.region) AS n FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, 'north'), (NULL, NULL);
INSERT INTO regions VALUES ('north', 'NO');
--- change
UPDATE customers SET region = 'north' WHERE id = 2;
INSERT INTO regions VALUES ('north', 'SE');
--- delta
-- -1 | 1 | 1
-- +1 | 1 | 2
-- -1 | 2 | 0
-- +1 | 2 | 2
-- -1 | 3 | 1
-- +1 | 3 | 2

--- case: a derived table that mentions the row keeps its rows
--- covers: Q14 a correlated scalar subquery over a FROM that mentions the row
SELECT c.id, (SELECT COUNT(*) * 10 + COUNT(r.country) FROM (SELECT d.region FROM customers AS d WHERE d.id = c.id) AS q LEFT JOIN regions AS r ON r.name = q.region) AS n FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, 'north'), (NULL, NULL);
INSERT INTO regions VALUES ('north', 'NO');
--- change
UPDATE customers SET region = 'north' WHERE id = 2;
INSERT INTO regions VALUES ('north', 'SE');
--- delta
-- -1 | 1 | 11
-- +1 | 1 | 22
-- -1 | 2 | 10
-- +1 | 2 | 22
-- -1 | 3 | 11
-- +1 | 3 | 22

--- case: two derived tables that mention the row
--- covers: Q14 a correlated scalar subquery over a FROM that mentions the row
SELECT c.id, (SELECT COUNT(*) * 10 + COUNT(DISTINCT q.amount) FROM (SELECT o.amount FROM orders AS o WHERE o.customer = c.id) AS q JOIN (SELECT d.id FROM customers AS d WHERE d.region = c.region) AS r ON r.id < q.amount) AS n FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, 'north'), (NULL, NULL);
INSERT INTO orders VALUES (1, 1, 5), (11, 1, 7), (3, 1, 5), (13, 2, 3), (14, NULL, 9);
--- change
INSERT INTO orders VALUES (2, 2, 3), (16, 3, 4), (3, 1, 8);
DELETE FROM orders WHERE id = 11;
UPDATE customers SET region = 'north' WHERE id = 2;
--- delta
-- -1 | 1 | 62
-- +1 | 1 | 92
-- -1 | 2 | 11
-- +1 | 2 | 41
-- -1 | 3 | 0
-- +1 | 3 | 31

--- case: both sides of a UNION in FROM mention the row
--- covers: Q14 a correlated scalar subquery over a FROM that mentions the row
SELECT c.id, (SELECT SUM(q.v) FROM (SELECT o.amount AS v FROM orders AS o WHERE o.customer = c.id UNION ALL SELECT d.id FROM customers AS d WHERE d.region = c.region) AS q) AS total FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, 'north'), (NULL, NULL);
INSERT INTO orders VALUES (1, 1, 5), (11, 1, 7), (3, 1, 5), (13, 2, 3), (14, NULL, 9);
--- change
INSERT INTO orders VALUES (2, 2, 3), (16, 3, 4), (3, 1, 8);
DELETE FROM orders WHERE id = 11;
UPDATE customers SET region = 'north' WHERE id = 2;
--- delta
-- -1 | 1 | 21
-- +1 | 1 | 24
-- +1 | 2 | 12
-- -1 | 2 | 5
-- +1 | 3 | 10
-- -1 | 3 | 4

--- case: ON of a join mentions the row
--- covers: Q14 a correlated scalar subquery over a FROM that mentions the row
SELECT c.id, (SELECT COUNT(*) FROM orders AS o JOIN customers AS d ON d.id = o.customer AND d.region = c.region) AS n FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, 'north'), (NULL, NULL);
INSERT INTO orders VALUES (1, 1, 5), (11, 1, 7), (3, 1, 5), (13, 2, 3), (14, NULL, 9);
--- change
INSERT INTO orders VALUES (2, 2, 3), (16, 3, 4), (3, 1, 8);
DELETE FROM orders WHERE id = 11;
UPDATE customers SET region = 'north' WHERE id = 2;
--- delta
-- -1 | 1 | 3
-- +1 | 1 | 6
-- -1 | 2 | 1
-- +1 | 2 | 6
-- -1 | 3 | 3
-- +1 | 3 | 6

--- case: ON of a LEFT JOIN mentions the row
--- covers: Q14 a correlated scalar subquery over a FROM that mentions the row
SELECT c.id, (SELECT COUNT(*) * 10 + COUNT(d.id) FROM orders AS o LEFT JOIN customers AS d ON d.id = o.customer AND d.region = c.region) AS n FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, 'north'), (NULL, NULL);
INSERT INTO orders VALUES (1, 1, 5), (11, 1, 7), (3, 1, 5), (13, 2, 3), (14, NULL, 9);
--- change
INSERT INTO orders VALUES (2, 2, 3), (16, 3, 4), (3, 1, 8);
DELETE FROM orders WHERE id = 11;
UPDATE customers SET region = 'north' WHERE id = 2;
--- delta
-- -1 | 1 | 53
-- +1 | 1 | 76
-- -1 | 2 | 51
-- +1 | 2 | 76
-- -1 | 3 | 53
-- +1 | 3 | 76
-- -1 | NULL | 50
-- +1 | NULL | 70

--- case: EXISTS of a derived table that mentions the row
--- covers: Q13 EXISTS over a FROM that mentions the row
SELECT c.id FROM customers AS c WHERE NOT EXISTS (SELECT 1 FROM (SELECT o.amount, COUNT(*) AS n FROM orders AS o WHERE o.customer = c.id GROUP BY o.amount) AS q WHERE q.n > 1);
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, 'north'), (NULL, NULL);
INSERT INTO orders VALUES (1, 1, 5), (11, 1, 7), (3, 1, 5), (13, 2, 3), (14, NULL, 9);
--- change
INSERT INTO orders VALUES (2, 2, 3), (16, 3, 4), (3, 1, 8);
DELETE FROM orders WHERE id = 11;
UPDATE customers SET region = 'north' WHERE id = 2;
--- delta
-- -1 | 2

--- case: IN a derived table that mentions the row
--- covers: Q13 IN over a FROM that mentions the row
SELECT c.id, c.id IN (SELECT q.id FROM (SELECT d.id + 1 AS id FROM customers AS d WHERE d.region <> c.region) AS q) AS elsewhere FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, 'north'), (NULL, NULL);
--- change
UPDATE customers SET region = 'north' WHERE id = 2;
--- delta
-- +1 | 2 | False
-- -1 | 2 | True
-- +1 | 3 | False
-- -1 | 3 | True

--- case: LATERAL over a derived table that mentions the row
--- covers: Q15 LATERAL over a FROM that mentions the row
SELECT c.id, l.amount, l.n FROM customers AS c LEFT JOIN LATERAL (SELECT q.amount, q.n FROM (SELECT o.amount, COUNT(*) AS n FROM orders AS o WHERE o.customer = c.id GROUP BY o.amount) AS q WHERE q.n > 1) AS l ON l.amount > 1;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, 'north'), (NULL, NULL);
INSERT INTO orders VALUES (1, 1, 5), (11, 1, 7), (3, 1, 5), (13, 2, 3), (14, NULL, 9);
--- change
INSERT INTO orders VALUES (2, 2, 3), (16, 3, 4), (3, 1, 8);
DELETE FROM orders WHERE id = 11;
UPDATE customers SET region = 'north' WHERE id = 2;
--- delta
-- +1 | 2 | 3 | 2
-- -1 | 2 | NULL | NULL

--- case: WITH in a subquery mentions the row
--- covers: Q14 a correlated scalar subquery over a FROM that mentions the row
SELECT c.id, (WITH q AS (SELECT o.amount FROM orders AS o WHERE o.customer = c.id AND o.id IN (SELECT d.id FROM customers AS d WHERE d.region = 'north')) SELECT MAX(q.amount) FROM q WHERE q.amount <> c.id) AS most FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, 'north'), (NULL, NULL);
INSERT INTO orders VALUES (1, 1, 5), (11, 1, 7), (3, 1, 5), (13, 2, 3), (14, NULL, 9);
--- change
INSERT INTO orders VALUES (2, 2, 3), (16, 3, 4), (3, 1, 8);
DELETE FROM orders WHERE id = 11;
UPDATE customers SET region = 'north' WHERE id = 2;
--- delta
-- -1 | 1 | 5
-- +1 | 1 | 8
-- +1 | 2 | 3
-- -1 | 2 | NULL

--- case: what is asked in WHERE beside a derived table that mentions the row
--- covers: Q14 a correlated scalar subquery over a FROM that mentions the row
SELECT c.id, (SELECT MAX(q.amount) FROM (SELECT o.id, o.amount FROM orders AS o WHERE o.customer = c.id) AS q WHERE q.amount > (SELECT AVG(p.amount) FROM orders AS p)) AS above FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, 'north'), (NULL, NULL);
INSERT INTO orders VALUES (1, 1, 5), (11, 1, 7), (3, 1, 5), (13, 2, 3), (14, NULL, 9);
--- change
INSERT INTO orders VALUES (2, 2, 3), (16, 3, 4), (3, 1, 8);
DELETE FROM orders WHERE id = 11;
UPDATE customers SET region = 'north' WHERE id = 2;
--- delta
-- -1 | 1 | 7
-- +1 | 1 | 8

--- case: a table function over the row, beside a table
--- covers: Q15 a table function in a correlated subquery, beside tables
SELECT v.id, (SELECT SUM(o.amount * e.x) FROM orders AS o, explode(v.tags) AS e(x) WHERE o.id = e.x) AS total FROM visits AS v;
--- before
INSERT INTO orders VALUES (1, 1, 5), (11, 1, 7), (3, 1, 5), (13, 2, 3), (14, NULL, 9);
INSERT INTO visits (id, tags) VALUES (1, array(1, 2, 2)), (2, array(3)), (3, NULL);
--- change
INSERT INTO orders VALUES (2, 2, 3), (16, 3, 4), (3, 1, 8);
DELETE FROM orders WHERE id = 11;
UPDATE visits SET tags = array(3, 11) WHERE id = 3;
--- delta
-- +1 | 1 | 17
-- -1 | 1 | 5
-- -1 | 2 | 15
-- +1 | 2 | 39
-- +1 | 3 | 39
-- -1 | 3 | NULL

--- case: a table function over the row keeps its rows
--- covers: Q15 a table function in a correlated subquery, beside tables
SELECT v.id, (SELECT COUNT(*) * 10 + COUNT(o.id) FROM explode(v.tags) AS e(x) LEFT JOIN orders AS o ON o.id = e.x) AS n FROM visits AS v;
--- before
INSERT INTO orders VALUES (1, 1, 5), (11, 1, 7), (3, 1, 5), (13, 2, 3), (14, NULL, 9);
INSERT INTO visits (id, tags) VALUES (1, array(1, 2, 2)), (2, array(3)), (3, NULL);
--- change
INSERT INTO orders VALUES (2, 2, 3), (16, 3, 4), (3, 1, 8);
DELETE FROM orders WHERE id = 11;
UPDATE visits SET tags = array(3, 11) WHERE id = 3;
--- delta
-- -1 | 1 | 31
-- +1 | 1 | 33
-- -1 | 2 | 11
-- +1 | 2 | 22
-- -1 | 3 | 0
-- +1 | 3 | 32

--- case: LATERAL over a table function over the row
--- covers: Q15 a table function in a correlated subquery, beside tables
SELECT v.id, l.amount FROM visits AS v, LATERAL (SELECT o.amount FROM explode(v.tags) AS e(x) JOIN orders AS o ON o.id = e.x) AS l;
--- before
INSERT INTO orders VALUES (1, 1, 5), (11, 1, 7), (3, 1, 5), (13, 2, 3), (14, NULL, 9);
INSERT INTO visits (id, tags) VALUES (1, array(1, 2, 2)), (2, array(3)), (3, NULL);
--- change
INSERT INTO orders VALUES (2, 2, 3), (16, 3, 4), (3, 1, 8);
DELETE FROM orders WHERE id = 11;
UPDATE visits SET tags = array(3, 11) WHERE id = 3;
--- delta
-- +2 | 1 | 3
-- +1 | 2 | 8
-- +1 | 3 | 5
-- +1 | 3 | 8

--- case: a table function beside a derived table that mentions the row
--- covers: Q15 a table function in a correlated subquery, beside tables
--- spark: sqlglot writes no LATERAL of a function in DuckDB's words
SELECT c.id, (SELECT SUM(e.x) FROM (SELECT v.tags FROM visits AS v WHERE v.id = c.id) AS q, LATERAL explode(q.tags) AS e(x) WHERE e.x > 1) AS total FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, 'north');
INSERT INTO visits (id, tags) VALUES (1, array(1, 2, 2)), (2, array(3)), (3, NULL);
--- change
UPDATE visits SET tags = array(3, 11) WHERE id = 3;
UPDATE customers SET id = 1 WHERE id = 2;
--- delta
-- +1 | 1 | 4
-- -1 | 2 | 3
-- -1 | 3 | NULL
-- +1 | 3 | 14

--- case: SEMI and ANTI JOIN ask for the row
--- covers: Q14 a correlated scalar subquery over a FROM that mentions the row
SELECT c.id, (SELECT COUNT(*) FROM customers AS d LEFT ANTI JOIN orders AS o ON o.id = c.id AND o.customer = d.id) AS n, (SELECT SUM(o.amount) FROM orders AS o LEFT SEMI JOIN customers AS d ON d.id = o.id AND d.region = c.region) AS s FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, 'north'), (NULL, NULL);
INSERT INTO orders VALUES (1, 1, 5), (11, 1, 7), (3, 1, 5), (13, 2, 3), (14, NULL, 9);
--- change
INSERT INTO orders VALUES (2, 2, 3), (16, 3, 4), (3, 1, 8);
DELETE FROM orders WHERE id = 11;
UPDATE customers SET region = 'north' WHERE id = 2;
--- delta
-- +1 | 1 | 3 | 21
-- +1 | 2 | 3 | 21
-- +1 | 3 | 3 | 21
-- -1 | 1 | 3 | 10
-- -1 | 2 | 4 | NULL
-- -1 | 3 | 3 | 10

--- case: a RIGHT JOIN keeps a derived table that mentions the row
--- covers: Q14 a correlated scalar subquery over a FROM that mentions the row
SELECT c.id, (SELECT COUNT(*) * 10 + COUNT(o.id) FROM orders AS o RIGHT JOIN (SELECT d.id FROM customers AS d WHERE d.region = c.region) AS q ON o.customer = q.id) AS n FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, 'north'), (NULL, NULL);
INSERT INTO orders VALUES (1, 1, 5), (11, 1, 7), (3, 1, 5), (13, 2, 3), (14, NULL, 9);
--- change
INSERT INTO orders VALUES (2, 2, 3), (16, 3, 4), (3, 1, 8);
DELETE FROM orders WHERE id = 11;
UPDATE customers SET region = 'north' WHERE id = 2;
--- delta
-- +1 | 1 | 66
-- +1 | 2 | 66
-- +1 | 3 | 66
-- -1 | 1 | 43
-- -1 | 2 | 11
-- -1 | 3 | 43

--- case: LATERAL beside a derived table that mentions the row
--- covers: Q14 a correlated scalar subquery over a FROM that mentions the row
SELECT c.id, (SELECT SUM(l.amount) FROM (SELECT d.id FROM customers AS d WHERE d.region = c.region) AS q, LATERAL (SELECT o.amount FROM orders AS o WHERE o.customer = q.id) AS l) AS s FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, 'north'), (NULL, NULL);
INSERT INTO orders VALUES (1, 1, 5), (11, 1, 7), (3, 1, 5), (13, 2, 3), (14, NULL, 9);
--- change
INSERT INTO orders VALUES (2, 2, 3), (16, 3, 4), (3, 1, 8);
DELETE FROM orders WHERE id = 11;
UPDATE customers SET region = 'north' WHERE id = 2;
--- delta
-- +1 | 1 | 28
-- +1 | 2 | 28
-- +1 | 3 | 28
-- -1 | 1 | 17
-- -1 | 2 | 3
-- -1 | 3 | 17

--- case: a subquery in ON beside a derived table that mentions the row
--- covers: Q14 a correlated scalar subquery over a FROM that mentions the row
SELECT c.id, (SELECT COUNT(o.id) FROM (SELECT d.id FROM customers AS d WHERE d.region = c.region) AS q JOIN orders AS o ON o.customer = q.id AND o.amount < (SELECT AVG(p.amount) FROM orders AS p)) AS n FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, 'north'), (NULL, NULL);
INSERT INTO orders VALUES (1, 1, 5), (11, 1, 7), (3, 1, 5), (13, 2, 3), (14, NULL, 9);
--- change
INSERT INTO orders VALUES (2, 2, 3), (16, 3, 4), (3, 1, 8);
DELETE FROM orders WHERE id = 11;
UPDATE customers SET region = 'north' WHERE id = 2;
--- delta
-- +1 | 1 | 5
-- +1 | 2 | 5
-- +1 | 3 | 5
-- -1 | 1 | 2
-- -1 | 2 | 1
-- -1 | 3 | 2

--- case: a question on the groups of a correlated subquery
--- covers: Q14 a subquery after WHERE of a correlated one, that mentions it
SELECT c.id FROM customers AS c WHERE EXISTS (SELECT o.customer FROM orders AS o WHERE o.customer = c.id GROUP BY o.customer HAVING COUNT(*) > (SELECT COUNT(*) FROM customers AS d WHERE d.id >= o.customer));
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, 'north'), (NULL, NULL);
INSERT INTO orders VALUES (1, 1, 5), (11, 1, 7), (3, 1, 5), (13, 2, 3), (14, NULL, 9);
--- change
INSERT INTO orders VALUES (2, 2, 3), (16, 3, 4), (3, 1, 8);
DELETE FROM orders WHERE id = 11;
UPDATE customers SET region = 'north' WHERE id = 2;
--- delta


--- case: a question on a group, inside a condition
--- covers: Q14 a subquery after WHERE of a correlated one, that mentions it
SELECT c.id, (SELECT MAX(o.amount) FROM orders AS o WHERE o.customer = c.id GROUP BY o.customer HAVING EXISTS (SELECT 1 FROM customers AS d WHERE d.id = o.customer AND d.region = 'north')) AS most FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, 'north'), (NULL, NULL);
INSERT INTO orders VALUES (1, 1, 5), (11, 1, 7), (3, 1, 5), (13, 2, 3), (14, NULL, 9);
--- change
INSERT INTO orders VALUES (2, 2, 3), (16, 3, 4), (3, 1, 8);
DELETE FROM orders WHERE id = 11;
UPDATE customers SET region = 'north' WHERE id = 2;
--- delta
-- +1 | 1 | 8
-- +1 | 2 | 3
-- +1 | 3 | 4
-- -1 | 1 | 7
-- -1 | 2 | NULL
-- -1 | 3 | NULL

--- case: the time in ON, beside a condition on the row
--- covers: Q25 the time beside a FROM that mentions the row
SELECT c.id, (SELECT COUNT(*) * 10 + COUNT(v.id) FROM orders AS o LEFT JOIN visits AS v ON v.id = c.id AND v.happened < now()) AS n FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
INSERT INTO visits (id, happened) VALUES (1, TIMESTAMP '2013-01-31 13:00:00'), (2, TIMESTAMP '2013-01-31 10:00:00'), (2, TIMESTAMP '2013-02-01 13:00:00');
--- change
INSERT INTO visits (id, happened) VALUES (1, TIMESTAMP '2013-02-01 11:00:00');
--- delta
-- +1 | 1 | 44
-- -1 | 1 | 20

--- case: the time beside a derived table that mentions the row
--- covers: Q25 the time beside a FROM that mentions the row
SELECT c.id, (SELECT COUNT(q.id) FROM (SELECT v.id, v.happened FROM visits AS v WHERE v.id = c.id) AS q WHERE q.happened < now()) AS n FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
INSERT INTO visits (id, happened) VALUES (1, TIMESTAMP '2013-01-31 13:00:00'), (2, TIMESTAMP '2013-01-31 10:00:00'), (2, TIMESTAMP '2013-02-01 13:00:00');
--- change
INSERT INTO visits (id, happened) VALUES (1, TIMESTAMP '2013-02-01 11:00:00');
--- delta
-- +1 | 1 | 2
-- -1 | 1 | 0

--- case: the time of a derived table that mentions the row, and beside it
--- covers: Q25 the time beside a FROM that mentions the row
SELECT c.id, (SELECT MAX(q.passed) = now() FROM (SELECT now() AS passed FROM visits AS v WHERE v.id = c.id AND v.happened < now()) AS q) AS n FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
INSERT INTO visits (id, happened) VALUES (1, TIMESTAMP '2013-01-31 13:00:00'), (2, TIMESTAMP '2013-01-31 10:00:00'), (2, TIMESTAMP '2013-02-01 13:00:00');
--- change
INSERT INTO visits (id, happened) VALUES (1, TIMESTAMP '2013-02-01 11:00:00');
--- delta
-- +1 | 1 | True
-- -1 | 1 | NULL

--- case: LATERAL VIEW of a derived table that mentions the row
--- covers: Q15 a table function in a correlated subquery, beside tables
--- spark: sqlglot writes no LATERAL of a function in DuckDB's words
SELECT c.id, (SELECT SUM(e.x) FROM (SELECT v.tags FROM visits AS v WHERE v.id = c.id) AS q LATERAL VIEW explode(q.tags) e AS x WHERE e.x > 1) AS total FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, 'north');
INSERT INTO visits (id, tags) VALUES (1, array(1, 2, 2)), (2, array(3)), (3, NULL);
--- change
UPDATE visits SET tags = array(3, 11) WHERE id = 3;
UPDATE customers SET id = 1 WHERE id = 2;
--- delta
-- +1 | 1 | 4
-- -1 | 2 | 3
-- -1 | 3 | NULL
-- +1 | 3 | 14

--- case: LEFT JOIN LATERAL beside a derived table that mentions the row
--- covers: Q14 a correlated scalar subquery over a FROM that mentions the row
SELECT c.id, (SELECT COUNT(*) * 10 + COUNT(l.amount) FROM (SELECT d.id, d.region FROM customers AS d WHERE d.region = c.region) AS q LEFT JOIN LATERAL (SELECT o.amount FROM orders AS o WHERE o.customer = q.id AND o.amount > 4) AS l) AS n FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, 'north'), (NULL, NULL);
INSERT INTO orders VALUES (1, 1, 5), (11, 1, 7), (3, 1, 5), (13, 2, 3), (14, NULL, 9);
--- change
INSERT INTO orders VALUES (2, 2, 3), (16, 3, 4), (3, 1, 8);
DELETE FROM orders WHERE id = 11;
UPDATE customers SET region = 'north' WHERE id = 2;
--- delta
-- +1 | 1 | 53
-- +1 | 2 | 53
-- +1 | 3 | 53
-- -1 | 1 | 43
-- -1 | 2 | 10
-- -1 | 3 | 43

--- case: joins in parentheses beside a derived table that mentions the row
--- covers: Q14 a correlated scalar subquery over a FROM that mentions the row
SELECT c.id, (SELECT COUNT(*) * 100 + COUNT(o.id) * 10 + COUNT(e.id) FROM (SELECT d.id FROM customers AS d WHERE d.region = c.region) AS q LEFT JOIN (orders AS o LEFT JOIN customers AS e ON e.id = o.customer AND e.region = 'north') ON o.id = q.id) AS n FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, 'north'), (NULL, NULL);
INSERT INTO orders VALUES (1, 1, 5), (11, 1, 7), (3, 1, 5), (13, 2, 3), (14, NULL, 9);
--- change
INSERT INTO orders VALUES (2, 2, 3), (16, 3, 4), (3, 1, 8);
DELETE FROM orders WHERE id = 11;
UPDATE customers SET region = 'north' WHERE id = 2;
--- delta
-- +1 | 1 | 444
-- +1 | 2 | 444
-- +1 | 3 | 444
-- -1 | 1 | 222
-- -1 | 2 | 100
-- -1 | 3 | 222

--- case: SEMI JOIN of joins in parentheses beside a derived table that mentions the row
--- covers: Q14 a correlated scalar subquery over a FROM that mentions the row
SELECT c.id, (SELECT COUNT(*) FROM (SELECT d.id FROM customers AS d WHERE d.region = c.region) AS q LEFT SEMI JOIN (orders AS o LEFT JOIN customers AS e ON e.id = o.customer) ON o.id = q.id AND e.region = 'north') AS n FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, 'north'), (NULL, NULL);
INSERT INTO orders VALUES (1, 1, 5), (11, 1, 7), (3, 1, 5), (13, 2, 3), (14, NULL, 9);
--- change
INSERT INTO orders VALUES (2, 2, 3), (16, 3, 4), (3, 1, 8);
DELETE FROM orders WHERE id = 11;
UPDATE customers SET region = 'north' WHERE id = 2;
--- delta
-- +1 | 1 | 3
-- +1 | 2 | 3
-- +1 | 3 | 3
-- -1 | 1 | 2
-- -1 | 2 | 0
-- -1 | 3 | 2

--- case: a table function in a LATERAL query takes unqualified columns of the query around
--- covers: Q15 a table function in a subquery that takes columns of the query around
SELECT o.id, x.s
FROM orders AS o, LATERAL (SELECT o.id + v AS s FROM explode(array(customer, amount)) AS t(v) WHERE amount > 5) AS x;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
--- delta
-- -1 | 2 | 5
-- -1 | 2 | 8
-- +1 | 3 | 11
-- +1 | 3 | 9
-- +1 | 9 | 11
-- +1 | 9 | 18

--- case: a table function among the outputs of a LATERAL query takes unqualified columns
--- covers: Q15 a table function in a subquery that takes columns of the query around
SELECT o.id, x.v FROM orders AS o, LATERAL (SELECT explode(array(customer, amount)) AS v) AS x;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
--- delta
-- -1 | 2 | 3
-- -1 | 2 | 6
-- +1 | 3 | 6
-- +1 | 3 | 8
-- +1 | 9 | 2
-- +1 | 9 | 9

--- case: a table function in EXISTS takes unqualified columns of the query around
--- covers: Q15 a table function in a subquery that takes columns of the query around
SELECT id
FROM orders WHERE EXISTS (SELECT 1 FROM explode(array(customer, amount)) AS e(v) WHERE v > id + 1);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
--- delta
-- -1 | 2
-- +1 | 3

--- case: a table function beside a table takes columns of the query around
--- covers: Q15 a table function in a subquery that takes columns of the query around
SELECT o.id, x.s
FROM orders AS o, LATERAL (SELECT c.id + v AS s FROM customers AS c, explode(array(amount)) AS t(v) WHERE c.region > 'a') AS x;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- +1 | 1 | 14
-- +1 | 1 | 7
-- -1 | 2 | 12
-- -1 | 2 | 9
-- +1 | 3 | 10
-- +1 | 3 | 11
-- +1 | 3 | 14
-- +1 | 3 | 17
-- +1 | 4 | 16
-- +1 | 4 | 9
-- +1 | 9 | 11
-- +1 | 9 | 12
-- +1 | 9 | 15
-- +1 | 9 | 18
