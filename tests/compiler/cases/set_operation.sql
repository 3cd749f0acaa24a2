--- case: INTERSECT keeps a row while both sides have it
--- covers: Q11 INTERSECT
SELECT customer FROM orders INTERSECT SELECT id FROM customers;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5), (12, 2, 5);
INSERT INTO customers VALUES (1, 'north'), (2, 'north'), (2, 'south');
--- change
DELETE FROM orders WHERE id = 10;
DELETE FROM customers WHERE region = 'north';
--- delta
-- -1 | 1

--- case: INTERSECT ALL keeps the smaller number of copies
--- covers: Q11 INTERSECT ALL
SELECT customer FROM orders INTERSECT ALL SELECT id FROM customers;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5), (12, 1, 5);
INSERT INTO customers VALUES (1, 'north'), (2, 'north');
--- change
INSERT INTO customers VALUES (1, 'south'), (1, 'south'), (1, 'west'), (2, 'south');
--- delta
-- +2 | 1

--- case: EXCEPT brings a row back when the right side loses it
--- covers: Q11 EXCEPT
SELECT customer FROM orders EXCEPT SELECT id FROM customers;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5), (12, 2, 5);
INSERT INTO customers VALUES (1, 'north'), (1, 'south');
--- change
DELETE FROM customers WHERE region = 'north';
DELETE FROM customers WHERE region = 'south';
INSERT INTO customers VALUES (2, 'north');
--- delta
-- +1 | 1
-- -1 | 2

--- case: EXCEPT ALL is in debt, and new rows of the left side pay it off first
--- covers: Q11 EXCEPT ALL
SELECT customer FROM orders EXCEPT ALL SELECT id FROM customers;
--- before
INSERT INTO orders VALUES (10, 1, 5);
INSERT INTO customers VALUES (1, 'north'), (1, 'south'), (1, 'west');
--- change
INSERT INTO orders VALUES (11, 1, 5), (12, 1, 5), (13, 1, 5);
--- delta
-- +1 | 1

--- case: EXCEPT ALL when the right side loses copies
--- covers: Q11 EXCEPT ALL
SELECT customer FROM orders EXCEPT ALL SELECT id FROM customers;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6);
INSERT INTO customers VALUES (1, 'north'), (1, 'south'), (1, 'west');
--- change
DELETE FROM customers WHERE region <> 'west';
--- delta
-- +1 | 1

--- case: MINUS is EXCEPT
--- covers: Q11 MINUS
SELECT customer FROM orders MINUS SELECT id FROM customers;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
INSERT INTO customers VALUES (1, 'north');
--- change
UPDATE customers SET id = 2;
--- delta
-- +1 | 1
-- -1 | 2

--- case: NULL equals NULL on the two sides
--- covers: Q11 NULLs; Q28 NULL in a set operation
SELECT customer, amount FROM orders EXCEPT SELECT id, NULL FROM customers;
--- before
INSERT INTO orders VALUES (10, NULL, NULL), (11, 1, NULL);
--- change
INSERT INTO customers VALUES (NULL, 'north');
--- delta
-- -1 | NULL | NULL

--- case: both sides move in one window and the row stays
--- covers: Q11 INTERSECT
SELECT customer FROM orders INTERSECT SELECT id FROM customers;
--- before
INSERT INTO orders VALUES (10, 1, 5);
INSERT INTO customers VALUES (1, 'north');
--- change
UPDATE orders SET id = 11;
DELETE FROM customers;
INSERT INTO customers VALUES (1, 'south'), (1, 'west');
--- delta

--- case: INTERSECT binds more tightly than EXCEPT and UNION
--- covers: Q11 nested and mixed
SELECT id FROM orders EXCEPT SELECT customer FROM orders INTERSECT SELECT id FROM customers;
--- before
INSERT INTO orders VALUES (1, 2, 5), (2, 1, 5);
INSERT INTO customers VALUES (1, 'north');
--- change
INSERT INTO customers VALUES (2, 'north');
DELETE FROM customers WHERE id = 1;
--- delta
-- +1 | 1
-- -1 | 2

--- case: parentheses around EXCEPT inside UNION ALL
--- covers: Q11 nested and mixed
SELECT id FROM customers UNION ALL (SELECT id FROM orders EXCEPT SELECT customer FROM orders);
--- before
INSERT INTO orders VALUES (1, 2, 5), (2, 1, 5), (3, 1, 5);
INSERT INTO customers VALUES (3, 'north');
--- change
UPDATE orders SET customer = 3 WHERE id = 2;
--- delta
-- -1 | 3

--- case: EXCEPT of groups, both of which change their sums
--- covers: Q11 EXCEPT
SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer EXCEPT SELECT id, COUNT(*) FROM customers GROUP BY id;
--- before
INSERT INTO orders VALUES (10, 1, 2), (11, 2, 2);
INSERT INTO customers VALUES (1, 'north'), (1, 'south');
--- change
INSERT INTO orders VALUES (12, 1, 1);
INSERT INTO customers VALUES (2, 'north'), (2, 'south');
--- delta
-- +1 | 1 | 3
-- -1 | 2 | 2

--- case: EXCEPT as a subquery that is joined and counted
--- covers: Q11 a set operation in FROM
SELECT c.region, COUNT(*) AS n FROM (SELECT id FROM customers EXCEPT SELECT customer FROM orders) AS t JOIN customers AS c ON c.id = t.id GROUP BY c.region;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'north');
INSERT INTO orders VALUES (10, 1, 2);
--- change
UPDATE orders SET customer = 3;
INSERT INTO customers VALUES (3, 'south');
--- delta
-- -1 | north | 1
-- +1 | north | 2

--- case: two sides of two types meet in EXCEPT
--- covers: Q11 EXCEPT
SELECT account FROM ledger EXCEPT SELECT id FROM customers;
--- before
INSERT INTO ledger VALUES (1, 1, 'x'), (2, 1, 'x');
--- change
INSERT INTO customers VALUES (1, 'north');
--- delta
-- -1 | 1

--- case: EXCEPT ALL of a column that is called copy
--- covers: Q11 EXCEPT ALL
SELECT customer AS copy FROM orders EXCEPT ALL SELECT id FROM customers;
--- before
INSERT INTO orders VALUES (10, 7, 5), (11, 7, 5), (12, 8, 5);
INSERT INTO customers VALUES (8, 'north');
--- change
DELETE FROM customers;
INSERT INTO customers VALUES (7, 'north');
--- delta
-- -1 | 7
-- +1 | 8

--- case: INTERSECT ALL below a column that has the name of an internal one
--- covers: Q11 INTERSECT ALL
SELECT q.id AS n FROM (SELECT customer AS __st_unfold_0, id FROM orders INTERSECT ALL SELECT id, 10 FROM customers) AS q WHERE q.__st_unfold_0 > 1;
--- before
INSERT INTO orders VALUES (10, 7, 5), (10, 7, 6);
INSERT INTO customers VALUES (7, 'north'), (7, 'south');
--- change
DELETE FROM customers WHERE region = 'north';
--- delta
-- -1 | 10
