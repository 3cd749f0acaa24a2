--- case: only the inner table changes
--- covers: Q15 LATERAL, top-N for each row
SELECT c.id, t.amount FROM customers AS c, LATERAL (SELECT o.amount FROM orders AS o WHERE o.customer = c.id ORDER BY o.amount DESC LIMIT 2) AS t;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 7), (12, 1, 3), (13, 2, 1);
--- change
INSERT INTO orders VALUES (14, 1, 6);
--- delta
-- -1 | 1 | 5
-- +1 | 1 | 6

--- case: the last of the first two leaves and the third takes its place
--- covers: Q15 LATERAL, top-N for each row
SELECT c.id, t.amount FROM customers AS c, LATERAL (SELECT o.amount FROM orders AS o WHERE o.customer = c.id ORDER BY o.amount DESC LIMIT 2) AS t;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 7), (12, 1, 3), (13, 2, 1);
--- change
DELETE FROM orders WHERE id = 10;
--- delta
-- +1 | 1 | 3
-- -1 | 1 | 5

--- case: the row goes, and so does all that was beside it
--- covers: Q15 LATERAL
SELECT c.id, t.id AS order_id FROM customers AS c, LATERAL (SELECT o.id FROM orders AS o WHERE o.customer = c.id) AS t;
--- before
INSERT INTO customers VALUES (1, 'north'), (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 7);
--- change
DELETE FROM customers WHERE id = 1;
DELETE FROM orders WHERE id = 10;
--- delta
-- -2 | 1 | 10

--- case: the key of the row changes while the rows of its old key go
--- covers: Q3 a key changes and its partner goes; Q15 LATERAL
SELECT c.region, t.id FROM customers AS c CROSS JOIN LATERAL (SELECT o.id FROM orders AS o WHERE o.customer = c.id) AS t;
--- before
INSERT INTO customers VALUES (1, 'north');
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 7);
--- change
UPDATE customers SET id = 2;
DELETE FROM orders WHERE customer = 1;
--- delta
-- -1 | north | 10
-- +1 | north | 11

--- case: a correlated aggregate has a row for every row
--- covers: Q15 LATERAL with an aggregate
SELECT c.id, t.n, t.total FROM customers AS c, LATERAL (SELECT COUNT(*) AS n, SUM(o.amount) AS total FROM orders AS o WHERE o.customer = c.id) AS t;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (NULL, 'west');
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 7);
--- change
DELETE FROM orders;
INSERT INTO orders VALUES (12, 2, 1), (13, NULL, 1);
--- delta
-- +1 | 1 | 0 | NULL
-- -1 | 1 | 2 | 12
-- -1 | 2 | 0 | NULL
-- +1 | 2 | 1 | 1

--- case: groups inside, of which one is emptied
--- covers: Q15 LATERAL with GROUP BY
SELECT c.id, t.amount, t.n FROM customers AS c JOIN LATERAL (SELECT o.amount, COUNT(*) AS n FROM orders AS o WHERE o.customer = c.id GROUP BY o.amount) AS t;
--- before
INSERT INTO customers VALUES (1, 'north');
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5), (12, 1, 7);
--- change
DELETE FROM orders WHERE id IN (10, 12);
--- delta
-- +1 | 1 | 5 | 1
-- -1 | 1 | 5 | 2
-- -1 | 1 | 7 | 1

--- case: LEFT JOIN LATERAL pads a row that loses its last answer
--- covers: Q15 LEFT JOIN LATERAL
SELECT c.id, t.id AS order_id FROM customers AS c LEFT JOIN LATERAL (SELECT o.id FROM orders AS o WHERE o.customer = c.id) AS t ON true;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (10, 1, 5);
--- change
DELETE FROM orders WHERE id = 10;
INSERT INTO orders VALUES (11, 2, 5);
--- delta
-- -1 | 1 | 10
-- +1 | 1 | NULL
-- +1 | 2 | 11
-- -1 | 2 | NULL

--- case: LEFT JOIN LATERAL of the first row, padded and not, in one window
--- covers: Q15 LEFT JOIN LATERAL
SELECT c.id, t.amount FROM customers AS c LEFT JOIN LATERAL (SELECT o.amount FROM orders AS o WHERE o.customer = c.id ORDER BY o.amount LIMIT 1) AS t ON true;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 7);
--- change
DELETE FROM orders WHERE id = 10;
INSERT INTO customers VALUES (3, 'east');
UPDATE customers SET id = 1 WHERE id = 2;
--- delta
-- -1 | 1 | 5
-- +2 | 1 | 7
-- -1 | 2 | NULL
-- +1 | 3 | NULL

--- case: rows beside each row by an inequality
--- covers: Q15 LATERAL without an equality
SELECT c.id, t.id AS order_id FROM customers AS c, LATERAL (SELECT o.id FROM orders AS o WHERE o.amount < c.id) AS t;
--- before
INSERT INTO customers VALUES (6, 'north'), (7, 'south');
INSERT INTO orders VALUES (10, 1, 6);
--- change
UPDATE orders SET amount = 5;
INSERT INTO orders VALUES (11, 1, 6);
--- delta
-- +1 | 6 | 10
-- +1 | 7 | 11

--- case: a join inside, of which the inner side changes
--- covers: Q15 LATERAL over a join
SELECT r.name, t.id FROM regions AS r, LATERAL (SELECT o.id FROM customers AS c JOIN orders AS o ON o.customer = c.id WHERE c.region = r.name) AS t;
--- before
INSERT INTO regions VALUES ('north', 'here');
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (10, 1, 6), (11, 2, 6);
--- change
UPDATE customers SET region = 'north' WHERE id = 2;
DELETE FROM orders WHERE id = 10;
--- delta
-- -1 | north | 10
-- +1 | north | 11

--- case: an expression of the row, with nothing read
--- covers: Q15 LATERAL without FROM
SELECT o.id, t.twice, t.twice + 1 AS more FROM orders AS o, LATERAL (SELECT o.amount * 2 AS twice) AS t;
--- before
INSERT INTO orders VALUES (10, 1, 6);
--- change
UPDATE orders SET amount = 7;
--- delta
-- -1 | 10 | 12 | 13
-- +1 | 10 | 14 | 15

--- case: LATERAL with a condition on what it answers
--- covers: Q15 LATERAL with ON
SELECT c.id, t.amount FROM customers AS c JOIN LATERAL (SELECT o.amount FROM orders AS o WHERE o.customer = c.id) AS t ON t.amount > 5;
--- before
INSERT INTO customers VALUES (1, 'north');
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6);
--- change
UPDATE orders SET amount = amount - 1;
INSERT INTO orders VALUES (12, 1, 5), (13, 1, 7);
--- delta
-- -1 | 1 | 6
-- +1 | 1 | 7

--- case: a subquery over the elements of the row
--- covers: Q15 a table function in a correlated subquery
SELECT v.id, l.x, (SELECT MAX(e.x) FROM explode(v.tags) AS e(x) WHERE e.x < 9) AS m, (SELECT SUM(x) FROM (SELECT explode(v.tags) AS x) AS s) AS s FROM visits AS v, LATERAL (SELECT x + v.id AS x FROM explode(v.tags) AS f(x) WHERE x > 1) AS l;
--- before
INSERT INTO visits (id, tags) VALUES (1, ARRAY(1, 2, 9)), (2, ARRAY(3));
--- change
INSERT INTO visits (id, tags) VALUES (3, ARRAY(5, 1));
DELETE FROM visits WHERE id = 1;
--- delta
-- -1 | 1 | 3 | 2 | 12
-- -1 | 1 | 10 | 2 | 12
-- +1 | 3 | 8 | 5 | 6

--- case: rows whose elements are looked at
--- covers: Q15 a table function in a correlated subquery
SELECT v.id, EXISTS (SELECT 1 FROM explode(v.tags) AS e(x) WHERE x > v.id) AS larger, o.amount FROM visits AS v JOIN orders AS o ON o.id = v.id WHERE 3 IN (SELECT x FROM explode(v.tags) AS e(x)) AND NOT EXISTS (SELECT 1 FROM explode(v.tags) AS e(x) WHERE x = o.amount);
--- before
INSERT INTO visits (id, tags) VALUES (1, ARRAY(3, 1)), (3, ARRAY(3)), (4, ARRAY(3, 7));
INSERT INTO orders VALUES (1, 1, 5), (3, 1, 3), (4, 1, 8);
--- change
UPDATE orders SET amount = 7 WHERE id > 2;
UPDATE visits SET tags = ARRAY(2) WHERE id = 1;
--- delta
-- -1 | 1 | True | 5
-- +1 | 3 | False | 7
-- -1 | 4 | True | 8

--- case: an outer join with what the elements of a row come to
--- covers: Q15 a table function in a correlated subquery
SELECT v.id, l.m FROM visits AS v LEFT JOIN LATERAL (SELECT MAX(x) AS m FROM explode(v.tags) AS e(x)) AS l ON l.m > 1;
--- before
INSERT INTO visits (id, tags) VALUES (1, ARRAY(1, 2)), (2, ARRAY(1));
--- change
INSERT INTO visits (id, tags) VALUES (3, ARRAY()), (2, ARRAY(4));
DELETE FROM visits WHERE id = 1;
--- delta
-- -1 | 1 | 2
-- +1 | 3 | NULL
-- +1 | 2 | 4

--- case: the first row of each row, with a column whose name has a dot
--- covers: Q15 LATERAL with LIMIT
SELECT l.* FROM odd AS c JOIN LATERAL (SELECT o.id, c.`a.b` FROM orders AS o WHERE o.id >= c.`a.b` ORDER BY o.id LIMIT 1) AS l;
--- before
INSERT INTO odd (`Order`, `a.b`) VALUES (1, 5);
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO odd (`Order`, `a.b`) VALUES (1, 10);
INSERT INTO orders VALUES (6, 1, 5);
--- delta
-- +1 | 10 | 10
-- +1 | 6 | 5
-- -1 | 10 | 5

--- case: all columns of the row around in a LATERAL query
--- covers: Q15 t.* of the query around
SELECT x.id, x.customer, x.twice FROM orders AS o, LATERAL (SELECT o.*, amount * 2 AS twice) AS x;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
--- delta
-- -1 | 2 | 3 | 12
-- +1 | 3 | 6 | 16
-- +1 | 9 | 2 | 18

--- case: some columns of the row around in a LATERAL query with tables
--- covers: Q15 t.* of the query around
SELECT o.id AS o_id, x.*
FROM orders AS o, LATERAL (SELECT O.* EXCEPT (id), c.* FROM customers AS c WHERE c.id = o.customer) AS x;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- -1 | 2 | 3 | 6 | 3 | b
-- +1 | 3 | 6 | 8 | 6 | c
-- +1 | 9 | 2 | 9 | 2 | d

--- case: columns of the row around and of a table that share a name in a LATERAL query
--- covers: Q15 t.* of the query around
SELECT * FROM (
  SELECT * FROM orders AS o JOIN LATERAL (SELECT o.*, c.* FROM customers AS c WHERE c.id <= o.customer)
) AS n (a, b, c, d, e, f, g, h);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6);
INSERT INTO customers VALUES (1, 'a'), (3, 'b');
--- change
INSERT INTO orders VALUES (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (0, 'z');
--- delta
-- +1 | 1 | 1 | 5 | 1 | 1 | 5 | 0 | z
-- -1 | 2 | 3 | 6 | 2 | 3 | 6 | 1 | a
-- -1 | 2 | 3 | 6 | 2 | 3 | 6 | 3 | b
-- +1 | 9 | 2 | 9 | 9 | 2 | 9 | 0 | z
-- +1 | 9 | 2 | 9 | 9 | 2 | 9 | 1 | a

--- case: * of a LATERAL query whose join repeats a name and mentions the row
--- covers: Q15 t.* of the query around
SELECT n.a, n.f, n.c
FROM (SELECT * FROM orders AS o JOIN LATERAL (SELECT * FROM customers AS c JOIN customers AS d ON c.id < d.id AND c.id <> o.id)) AS n(a, b, c, d, e, f, g);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- +1 | 1 | 3 | 5
-- +1 | 1 | 6 | 5
-- +3 | 1 | 9 | 5
-- -1 | 2 | 3 | 6
-- -2 | 2 | 6 | 6
-- +1 | 3 | 2 | 8
-- +2 | 3 | 3 | 8
-- +2 | 3 | 6 | 8
-- +3 | 3 | 9 | 8
-- +1 | 4 | 2 | 7
-- +1 | 4 | 3 | 7
-- +1 | 4 | 6 | 7
-- +4 | 4 | 9 | 7
-- +1 | 9 | 2 | 9
-- +2 | 9 | 3 | 9
-- +3 | 9 | 6 | 9
-- +4 | 9 | 9 | 9

--- case: columns of a merged side in a LATERAL query
--- covers: Q15 t.* of the query around
SELECT x.*
FROM (SELECT region, id FROM customers) AS c JOIN orders AS o USING (id), LATERAL (SELECT o.*) AS x;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- +1 | 3 | 6 | 8
-- +1 | 9 | 2 | 9

--- case: several LATERAL queries without names
--- covers: Q15 LATERAL without a name
SELECT id, a, b, c FROM orders, LATERAL (SELECT amount + 1 AS a), LATERAL (SELECT a * 2 AS b), LATERAL (SELECT a + b AS c);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6);
--- change
INSERT INTO orders VALUES (3, 6, 8);
UPDATE orders SET amount = 7 WHERE id = 2;
--- delta
-- -1 | 2 | 7 | 14 | 21
-- +1 | 2 | 8 | 16 | 24
-- +1 | 3 | 9 | 18 | 27

--- case: LATERAL before the first table
--- covers: Q15 LATERAL without a table before it
SELECT o.id, c.region FROM LATERAL (SELECT * FROM orders) AS o JOIN LATERAL (SELECT region FROM customers WHERE id = o.customer) AS c;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6);
INSERT INTO customers VALUES (1, 'a'), (3, 'b');
--- change
INSERT INTO orders VALUES (3, 1, 8);
DELETE FROM customers WHERE id = 3;
--- delta
-- -1 | 2 | b
-- +1 | 3 | a

--- case: a UNION in parentheses before INTERSECT
--- covers: Q15 LATERAL, over a set operation in parentheses
SELECT c.id, t.v FROM customers AS c, LATERAL ((SELECT o.amount AS v FROM orders AS o WHERE o.customer = c.id UNION ALL SELECT d.id FROM customers AS d WHERE d.region = c.region) INTERSECT SELECT p.id FROM orders AS p) AS t;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (1, 1, 5), (5, 2, 9);
--- change
INSERT INTO orders VALUES (9, 2, 3);
DELETE FROM orders WHERE id = 1;
--- delta
-- -1 | 1 | 1
-- -1 | 1 | 5
-- +1 | 2 | 9

--- case: the first row of one side of a UNION
--- covers: Q15 LATERAL, over a set operation in parentheses
SELECT c.id, t.v FROM customers AS c, LATERAL (SELECT o.id AS v FROM orders AS o WHERE o.customer = c.id UNION ALL (SELECT p.amount FROM orders AS p WHERE p.customer = c.id ORDER BY p.amount LIMIT 1)) AS t;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 7), (3, 2, 4);
--- change
INSERT INTO orders VALUES (8, 1, 2);
--- delta
-- -1 | 1 | 5
-- +1 | 1 | 2
-- +1 | 1 | 8

--- case: parentheses in a correlated EXISTS
--- covers: Q15 LATERAL, over a set operation in parentheses
SELECT c.id FROM customers AS c WHERE EXISTS ((SELECT o.amount FROM orders AS o WHERE o.customer = c.id UNION SELECT d.id FROM customers AS d WHERE d.region = c.region) EXCEPT SELECT p.id FROM orders AS p);
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (1, 1, 5), (5, 2, 2);
--- change
INSERT INTO orders VALUES (2, 2, 1);
UPDATE customers SET region = NULL WHERE id = 1;
--- delta
-- -1 | 2
