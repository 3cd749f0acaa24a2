--- case: a value beside every row moves all of them
--- covers: Q14 a scalar subquery in SELECT
SELECT id, (SELECT MAX(id) FROM customers) AS last FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
--- change
INSERT INTO customers VALUES (7, 'north');
--- delta
-- +1 | 10 | 7
-- -1 | 10 | NULL
-- +1 | 11 | 7
-- -1 | 11 | NULL

--- case: an extremum that stays touches no row
--- covers: Q14 a scalar subquery in SELECT
SELECT id, (SELECT MAX(id) FROM customers) AS last FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5);
INSERT INTO customers VALUES (7, 'north');
--- change
INSERT INTO customers VALUES (6, 'north');
--- delta

--- case: the set of a scalar subquery is emptied
--- covers: Q14 a scalar subquery over no rows
SELECT id, (SELECT SUM(o.amount) FROM orders AS o WHERE o.customer = c.id) AS total, (SELECT COUNT(*) FROM orders AS o WHERE o.customer = c.id) AS n FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
--- change
DELETE FROM orders WHERE customer = 1;
--- delta
-- -1 | 1 | 5 | 1
-- +1 | 1 | NULL | 0

--- case: the key of the row changes and the rows of its subquery go
--- covers: Q3 a key changes and its partner goes; Q14 a correlated scalar subquery
SELECT region, (SELECT SUM(o.amount) FROM orders AS o WHERE o.customer = c.id) AS total FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (NULL, 'west');
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 7), (12, NULL, 9);
--- change
UPDATE customers SET id = 2 WHERE id = 1;
DELETE FROM orders WHERE customer = 1;
INSERT INTO orders VALUES (13, 2, 1);
--- delta
-- -1 | north | 5
-- +1 | north | 8

--- case: rows that have the greatest value of their own table
--- covers: Q14 a scalar subquery in WHERE
SELECT id FROM orders WHERE amount = (SELECT MAX(amount) FROM orders);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 7), (12, 3, 7);
--- change
DELETE FROM orders WHERE amount = 7;
--- delta
-- +1 | 10
-- -1 | 11
-- -1 | 12

--- case: the greatest sum of a common table expression
--- covers: Q14 a scalar subquery in WHERE; Q17 a CTE read twice
WITH revenue AS (SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer) SELECT c.region, r.total FROM customers AS c JOIN revenue AS r ON r.customer = c.id WHERE r.total = (SELECT MAX(total) FROM revenue);
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 7);
--- change
INSERT INTO orders VALUES (12, 1, 9), (13, 2, -3);
--- delta
-- +1 | north | 14
-- -1 | south | 7

--- case: more than the average of its own group
--- covers: Q14 a correlated scalar subquery in WHERE
SELECT id, amount FROM orders AS o WHERE amount > (SELECT AVG(i.amount) FROM orders AS i WHERE i.customer = o.customer);
--- before
INSERT INTO orders VALUES (10, 1, 4), (11, 1, 6), (12, 2, 1);
--- change
INSERT INTO orders VALUES (13, 1, 20);
UPDATE orders SET customer = 1 WHERE id = 12;
--- delta
-- -1 | 11 | 6
-- +1 | 13 | 20

--- case: a scalar subquery in HAVING
--- covers: Q14 a scalar subquery in HAVING
SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer HAVING SUM(amount) > (SELECT COUNT(*) * 4 FROM customers);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 9);
INSERT INTO customers VALUES (1, 'north');
--- change
INSERT INTO customers VALUES (2, 'south');
INSERT INTO orders VALUES (12, 1, 4);
--- delta
-- -1 | 1 | 5
-- +1 | 1 | 9

--- case: IN a subquery in HAVING
--- covers: Q13 IN in HAVING
SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer HAVING customer IN (SELECT id FROM customers) OR COUNT(*) > 1;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 9), (12, 2, 9);
INSERT INTO customers VALUES (1, 'north');
--- change
DELETE FROM customers;
DELETE FROM orders WHERE id = 12;
INSERT INTO customers VALUES (2, 'north');
--- delta
-- -1 | 1 | 1
-- +1 | 2 | 1
-- -1 | 2 | 2

--- case: the first of an order as a value
--- covers: Q14 a scalar subquery with LIMIT; Q21 ORDER BY with LIMIT in a subquery
SELECT id, (SELECT c.region FROM customers AS c WHERE c.id <= o.customer ORDER BY c.id DESC, c.region LIMIT 1) AS region FROM orders AS o;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 3, 9), (12, 0, 9);
INSERT INTO customers VALUES (1, 'north'), (3, 'south');
--- change
DELETE FROM customers WHERE id = 3;
INSERT INTO customers VALUES (2, 'west');
--- delta
-- -1 | 11 | south
-- +1 | 11 | west

--- case: a subquery of one row, and of none
--- covers: Q14 a scalar subquery over no rows
SELECT o.id, (SELECT c.region FROM customers AS c WHERE c.id = o.customer AND c.id IN (SELECT MAX(id) FROM customers GROUP BY id HAVING COUNT(*) = 1)) AS region FROM orders AS o;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 9);
INSERT INTO customers VALUES (1, 'north');
--- change
DELETE FROM customers;
INSERT INTO customers VALUES (2, 'south');
--- delta
-- +1 | 10 | NULL
-- -1 | 10 | north
-- -1 | 11 | NULL
-- +1 | 11 | south

--- case: a subquery inside an aggregate
--- covers: Q14 a scalar subquery inside an aggregate
SELECT o.customer, SUM(o.amount * (SELECT COUNT(*) FROM customers AS c WHERE c.id = o.customer)) AS total FROM orders AS o GROUP BY o.customer;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 9);
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
--- change
DELETE FROM customers WHERE id = 2;
INSERT INTO customers VALUES (1, 'south');
--- delta
-- +1 | 1 | 10
-- -1 | 1 | 5
-- +1 | 2 | 0
-- -1 | 2 | 9

--- case: two subqueries of two tables in one expression
--- covers: Q14 two scalar subqueries in one expression
SELECT id, (SELECT COUNT(*) FROM customers AS c WHERE c.id = o.customer) + (SELECT COUNT(*) FROM regions) AS n FROM orders AS o;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 9);
INSERT INTO customers VALUES (1, 'north');
--- change
INSERT INTO regions VALUES ('north', 'here');
DELETE FROM customers;
DELETE FROM orders WHERE id = 11;
--- delta
-- -1 | 11 | 0

--- case: a subquery with another in it, one of whose tables does not change
--- covers: Q14 a scalar subquery inside a correlated one
SELECT c.id, (SELECT SUM(o.amount) * (SELECT COUNT(*) FROM regions) FROM orders AS o WHERE o.customer = c.id) AS total FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 7);
INSERT INTO regions VALUES ('north', 'here');
--- change
INSERT INTO customers VALUES (3, 'west'), (4, 'east');
INSERT INTO orders VALUES (12, 1, 6), (13, 3, 1);
--- delta
-- +1 | 1 | 11
-- -1 | 1 | 5
-- +1 | 3 | 1
-- +1 | 4 | NULL

--- case: a subquery with another in it, and all three tables move
--- covers: Q14 a scalar subquery inside a correlated one
SELECT c.id, (SELECT SUM(o.amount) * (SELECT COUNT(*) FROM regions) FROM orders AS o WHERE o.customer = c.id) AS total FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 7);
INSERT INTO regions VALUES ('north', 'here');
--- change
INSERT INTO regions VALUES ('south', 'there');
UPDATE orders SET customer = 1 WHERE id = 11;
INSERT INTO customers VALUES (1, 'west');
--- delta
-- +2 | 1 | 24
-- -1 | 1 | 5
-- -1 | 2 | 7
-- +1 | 2 | NULL

--- case: a subquery in the condition of a CASE over groups
--- covers: Q14 a scalar subquery over groups
SELECT customer, CASE WHEN COUNT(*) > (SELECT COUNT(*) FROM customers) THEN 'busy' ELSE 'calm' END AS kind FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 9), (12, 2, 9);
INSERT INTO customers VALUES (1, 'north');
--- change
DELETE FROM customers;
--- delta
-- +1 | 1 | busy
-- -1 | 1 | calm

--- case: three tables lose rows together around a subquery
--- covers: Q14 a correlated scalar subquery; Q2 three tables move
SELECT o.id, c.region FROM orders AS o JOIN customers AS c ON o.customer = c.id WHERE o.amount > (SELECT COUNT(*) FROM regions AS r WHERE r.name = c.region);
--- before
INSERT INTO orders VALUES (10, 1, 1), (11, 2, 1), (12, 1, 0);
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO regions VALUES ('north', 'here');
--- change
DELETE FROM regions;
DELETE FROM customers WHERE id = 2;
DELETE FROM orders WHERE id = 12;
--- delta
-- +1 | 10 | north
-- -1 | 11 | south

--- case: a value looked up by a collation
--- covers: Q28 subqueries by a collation
SELECT c.id, (SELECT MAX(r.country) FROM regions AS r WHERE r.name COLLATE UTF8_LCASE = c.region) AS country FROM customers AS c WHERE c.region = (SELECT MIN(s.name) FROM regions AS s) COLLATE UTF8_LCASE OR c.id > 1;
--- before
INSERT INTO customers VALUES (1, 'North'), (2, 'SOUTH'), (3, 'west');
INSERT INTO regions VALUES ('NORTH', 'x'), ('north', 'y'), ('south', 'z');
--- change
DELETE FROM regions WHERE country = 'y';
INSERT INTO regions VALUES ('West', 'v');
DELETE FROM regions WHERE country = 'x';
--- delta
-- -1 | 1 | y
-- +1 | 3 | v
-- -1 | 3 | NULL
