--- case: what can be reached, on a circle
--- covers: Q18 UNION, rows taken once
WITH RECURSIVE reach(a, b) AS (SELECT id, customer FROM orders UNION SELECT r.a, o.customer FROM reach AS r JOIN orders AS o ON o.id = r.b) SELECT a, b FROM reach;
--- before
INSERT INTO orders VALUES (1, 2, 0), (2, 3, 0), (3, 1, 0);
--- change
DELETE FROM orders WHERE id = 3;
--- delta
-- -1 | 1 | 1
-- -1 | 2 | 1
-- -1 | 2 | 2
-- -1 | 3 | 1
-- -1 | 3 | 2
-- -1 | 3 | 3

--- case: a row that is reached in two ways stays until both are gone
--- covers: Q18 UNION, rows taken once
WITH RECURSIVE reach AS (SELECT customer AS at FROM orders WHERE id = 1 UNION SELECT o.customer FROM reach AS r JOIN orders AS o ON o.id = r.at) SELECT at FROM reach;
--- before
INSERT INTO orders VALUES (1, 2, 0), (1, 3, 0), (2, 4, 0), (3, 4, 0), (4, 2, 0);
--- change
DELETE FROM orders WHERE id = 1 AND customer = 2;
DELETE FROM orders WHERE id = 3;
INSERT INTO orders VALUES (3, 5, 0);
--- delta
-- -1 | 2
-- -1 | 4
-- +1 | 5

--- case: a new derivation from a lost row does not keep the row
--- covers: Q18 UNION, rows taken once
WITH RECURSIVE reach AS (SELECT customer AS at FROM orders WHERE id = 0 UNION SELECT o.customer FROM reach AS r JOIN orders AS o ON o.id = r.at) SELECT at FROM reach;
--- before
INSERT INTO orders VALUES (0, 1, 0), (1, 2, 0), (1, 3, 0), (2, 4, 0);
--- change
DELETE FROM orders WHERE id = 2;
DELETE FROM orders WHERE id = 1 AND customer = 3;
INSERT INTO orders VALUES (3, 4, 0);
--- delta
-- -1 | 3
-- -1 | 4

--- case: rows grouped above a recursion without copies, whose step reads two tables
--- covers: Q18 UNION, rows taken once
WITH RECURSIVE seen(at, region) AS (SELECT o.id, CAST('' AS STRING) FROM orders AS o WHERE o.amount = 1 UNION SELECT o.customer, c.region FROM seen AS s JOIN orders AS o ON o.id = s.at LEFT JOIN customers AS c ON c.id = o.customer) SELECT region, COUNT(*) AS n FROM seen GROUP BY region;
--- before
INSERT INTO orders VALUES (1, 2, 1), (2, 1, 0);
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
--- change
UPDATE customers SET region = 'north' WHERE id = 2;
--- delta
-- -1 | north | 1
-- -1 | south | 1
-- +1 | north | 2

--- case: rows grouped above a recursion without copies, with inserts only
--- covers: Q18 UNION, groups of rows that came
WITH RECURSIVE reach(root, at) AS (SELECT id, id FROM orders UNION SELECT r.root, o.id FROM reach AS r JOIN orders AS o ON o.customer = r.at) SELECT root, n FROM (SELECT root, COUNT(*) AS n FROM reach GROUP BY root) AS g WHERE n > 1;
--- before
INSERT INTO orders VALUES (1, 0, 0), (2, 1, 0);
--- change
INSERT INTO orders VALUES (3, 1, 0);
--- delta
-- -1 | 1 | 2
-- +1 | 1 | 3

--- case: a new derivation from a lost row does not keep the row, when the step can fail
--- covers: Q18 UNION, a step that can fail
WITH RECURSIVE reach AS (SELECT customer AS at FROM orders WHERE id = 0 UNION SELECT CAST(word AS INT) FROM (SELECT CAST(o.customer AS STRING) AS word FROM reach AS r JOIN orders AS o ON o.id = r.at) AS words) SELECT at FROM reach;
--- before
INSERT INTO orders VALUES (0, 1, 0), (1, 2, 0), (1, 3, 0), (2, 4, 0);
--- change
DELETE FROM orders WHERE id = 2;
DELETE FROM orders WHERE id = 1 AND customer = 3;
INSERT INTO orders VALUES (3, 4, 0);
--- delta
-- -1 | 3
-- -1 | 4

--- case: what was reached already is reached in one more way
--- covers: Q18 UNION, rows taken once
WITH RECURSIVE reach AS (SELECT customer AS at FROM orders WHERE id = 0 UNION SELECT o.customer FROM reach AS r JOIN orders AS o ON o.id = r.at) SELECT at FROM reach;
--- before
INSERT INTO orders VALUES (0, 1, 0), (1, 2, 0);
--- change
INSERT INTO orders VALUES (2, 1, 0), (0, 2, 0);
--- delta

--- case: of two arms over different tables, one does not move
--- covers: Q18 UNION, a step of several arms
WITH RECURSIVE r AS (SELECT name AS at FROM regions WHERE country = '' UNION SELECT at FROM (SELECT a.name AS at FROM regions AS a JOIN r ON a.country = r.at UNION ALL SELECT c.region FROM customers AS c JOIN r ON CAST(c.id AS STRING) = r.at) AS x) SELECT at FROM r;
--- before
INSERT INTO regions VALUES ('1', ''), ('a', 'c');
INSERT INTO customers VALUES (1, 'c');
--- change
INSERT INTO customers VALUES (1, 'd'), (2, 'e');
DELETE FROM customers WHERE region = 'c';
--- delta
-- -1 | a
-- -1 | c
-- +1 | d
