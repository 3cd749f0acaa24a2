--- case: a semi join keeps a row once, however many partners it has
--- covers: Q2 LEFT SEMI JOIN
SELECT o.id FROM orders AS o LEFT SEMI JOIN customers AS c ON o.customer = c.id;
--- before
INSERT INTO orders VALUES (10, 1, 5), (10, 1, 5), (11, 2, 5);
INSERT INTO customers VALUES (1, 'north');
--- change
INSERT INTO customers VALUES (1, 'south'), (2, 'north');
--- delta
-- +1 | 11

--- case: a semi join loses the last partner
--- covers: Q2 LEFT SEMI JOIN
SELECT id FROM orders LEFT SEMI JOIN customers USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 5);
INSERT INTO customers VALUES (1, 'north'), (2, 'north'), (2, 'south');
--- change
DELETE FROM customers WHERE region = 'north';
--- delta
-- -1 | 1

--- case: an anti join keeps the rows with a NULL key
--- covers: Q2 LEFT ANTI JOIN; Q28 a NULL key in an anti join
SELECT o.id FROM orders AS o LEFT ANTI JOIN customers AS c ON o.customer = c.id;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, NULL, 5);
INSERT INTO customers VALUES (1, 'north');
--- change
INSERT INTO customers VALUES (NULL, 'north');
DELETE FROM customers WHERE id = 1;
--- delta
-- +1 | 10

--- case: the key of a row changes and the partner of its anti join goes
--- covers: Q2 LEFT ANTI JOIN; Q3 a key changes and its partner goes
SELECT o.id, o.customer FROM orders AS o LEFT ANTI JOIN customers AS c ON o.customer = c.id;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5), (12, 3, 5);
INSERT INTO customers VALUES (1, 'north'), (2, 'north');
--- change
UPDATE orders SET customer = 2 WHERE id = 12;
UPDATE orders SET customer = 3 WHERE id = 10;
DELETE FROM customers WHERE id = 2;
--- delta
-- +1 | 10 | 3
-- +1 | 11 | 2
-- +1 | 12 | 2
-- -1 | 12 | 3

--- case: an anti join with an inequality
--- covers: Q2 LEFT ANTI JOIN
SELECT o.id FROM orders AS o ANTI JOIN customers AS c ON o.amount > c.id;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 8);
INSERT INTO customers VALUES (7, 'north');
--- change
UPDATE customers SET id = 9;
INSERT INTO orders VALUES (12, 1, 10);
--- delta
-- +1 | 11

--- case: a semi join and an anti join in a chain, all tables move
--- covers: Q2 LEFT SEMI JOIN; Q2 LEFT ANTI JOIN
SELECT o.id FROM orders AS o LEFT SEMI JOIN customers AS c ON o.customer = c.id LEFT ANTI JOIN regions AS r ON length(r.name) = o.amount;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5), (12, 2, 4);
INSERT INTO customers VALUES (1, 'north');
INSERT INTO regions VALUES ('north', 'here');
--- change
DELETE FROM regions;
UPDATE customers SET id = 2;
INSERT INTO regions VALUES ('west', 'here');
--- delta
-- +1 | 11

--- case: the alias of the other table is also a column
--- covers: Q2 LEFT SEMI JOIN
SELECT b.d AS id FROM (SELECT customer AS d, amount FROM orders) AS b LEFT SEMI JOIN customers AS d ON b.d = d.id AND d.region IS NOT NULL LEFT ANTI JOIN (VALUES (7, 'x')) AS amount(n, s) ON amount.n = b.amount;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 2, 7);
--- change
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
--- delta
-- +1 | 1

--- case: a join by names after a semi join
--- covers: Q2 LEFT SEMI JOIN before NATURAL JOIN
SELECT * FROM orders AS o LEFT SEMI JOIN customers AS c ON o.customer = c.id NATURAL JOIN (SELECT id, region AS name FROM customers) AS d;
--- before
INSERT INTO orders VALUES (1, 2, 5), (2, 7, 5);
INSERT INTO customers VALUES (1, 'north');
--- change
INSERT INTO customers VALUES (2, 'south');
--- delta
-- +1 | 1 | 2 | 5 | north

--- case: ANTI JOIN with a table whose name a LATERAL VIEW has, too
--- covers: Q2 LEFT ANTI JOIN
SELECT e.id, a.p FROM customers AS e LEFT ANTI JOIN orders AS a ON e.id = a.customer LATERAL VIEW explode(array(1, 2)) a AS p;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (10, 1, 5);
--- change
DELETE FROM orders;
--- delta
-- +1 | 1 | 1
-- +1 | 1 | 2

--- case: a semi join with a join in parentheses
--- covers: Q2 semi joins with joins in parentheses
SELECT o.* FROM orders AS o SEMI JOIN (customers AS c JOIN regions AS r ON c.region = r.name) ON o.customer = c.id;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
INSERT INTO customers VALUES (1, 'north');
INSERT INTO regions VALUES ('north', 'x'), ('north', 'y'), ('south', 'x');
--- change
UPDATE customers SET region = 'east';
--- delta
-- -1 | 1 | 1 | 5
-- -1 | 2 | 1 | 6

--- case: an anti join with an outer join in parentheses
--- covers: Q2 semi joins with joins in parentheses
SELECT * FROM orders AS o ANTI JOIN (customers AS c LEFT JOIN regions AS r ON c.region = r.name) ON o.customer = c.id AND r.country = 'x';
--- before
INSERT INTO orders VALUES (1, 1, 5);
INSERT INTO customers VALUES (1, 'north');
--- change
INSERT INTO regions VALUES ('north', 'x');
--- delta
-- -1 | 1 | 1 | 5

--- case: rows with and without a partner by a collation
--- covers: Q28 subqueries by a collation
SELECT c.id FROM customers AS c WHERE EXISTS (SELECT 1 FROM regions AS r WHERE r.name COLLATE UTF8_LCASE = c.region) AND NOT EXISTS (SELECT 1 FROM regions AS r WHERE r.country = c.region COLLATE UTF8_LCASE);
--- before
INSERT INTO customers VALUES (1, 'North'), (2, 'SOUTH'), (3, 'west');
INSERT INTO regions VALUES ('NORTH', 'x'), ('north', 'y'), ('south', 'z');
--- change
DELETE FROM regions WHERE name = 'NORTH';
INSERT INTO regions VALUES ('West', 'SouTH');
--- delta
-- -1 | 2
-- +1 | 3

--- case: members of a list by a collation
--- covers: Q28 subqueries by a collation
SELECT id, region COLLATE UTF8_LCASE IN (SELECT country FROM regions) AS listed FROM customers WHERE region COLLATE UTF8_LCASE IN (SELECT name FROM regions);
--- before
INSERT INTO customers VALUES (1, 'North'), (2, 'SOUTH'), (3, 'west');
INSERT INTO regions VALUES ('NORTH', 'x'), ('north', 'y'), ('south', 'north');
--- change
DELETE FROM regions WHERE name = 'NORTH';
INSERT INTO regions VALUES ('West', 'SouTH');
--- delta
-- -1 | 2 | False
-- +1 | 2 | True
-- +1 | 3 | False

--- case: a semi join and an anti join by a collation
--- covers: Q28 subqueries by a collation
SELECT c.id FROM customers AS c LEFT SEMI JOIN regions AS r ON r.name COLLATE UTF8_LCASE = c.region LEFT ANTI JOIN regions AS s ON c.region COLLATE UTF8_LCASE = s.country;
--- before
INSERT INTO customers VALUES (1, 'North'), (2, 'SOUTH'), (3, 'west');
INSERT INTO regions VALUES ('NORTH', 'x'), ('north', 'y'), ('south', 'z');
--- change
DELETE FROM regions WHERE name = 'NORTH';
INSERT INTO regions VALUES ('West', 'SouTH');
--- delta
-- -1 | 2
-- +1 | 3

--- case: a semi join with parentheses that is matched by names
--- covers: Q2 USING beside parentheses; Q2 LEFT SEMI JOIN
SELECT id FROM orders LEFT SEMI JOIN (customers AS c JOIN orders AS d USING (id)) USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 2, 5);
INSERT INTO customers VALUES (1, 'a');
--- change
INSERT INTO customers VALUES (2, 'b');
DELETE FROM customers WHERE id = 1;
--- delta
-- -1 | 1
-- +1 | 2

--- case: a query in two pairs of parentheses is one value
--- covers: Q13 IN with a list that holds a query
SELECT id, amount NOT IN ((SELECT MAX(id) FROM customers WHERE region = 'x')) AS other, id IN ((SELECT MAX(id) FROM customers), 7) AS one FROM orders;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
INSERT INTO customers VALUES (1, 'y');
--- change
INSERT INTO customers VALUES (5, 'x');
--- delta
-- +1 | 1 | False | False
-- +1 | 2 | True | False
-- -1 | 1 | NULL | True
-- -1 | 2 | NULL | False

--- case: ON of an anti join asks for something about the left row
--- covers: Q2 LEFT ANTI JOIN; Q13 EXISTS in ON of a semi join
SELECT o.id FROM orders AS o LEFT ANTI JOIN customers AS c ON o.customer = c.id AND NOT EXISTS (SELECT * FROM ledger AS l WHERE l.account = o.id);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5), (12, 1, 5);
INSERT INTO customers VALUES (1, 'north');
INSERT INTO ledger VALUES (10, 1, 'a'), (11, 1, 'b');
--- change
UPDATE ledger SET account = 12 WHERE account = 11;
--- delta
-- -1 | 11
-- +1 | 12

--- case: ON of a semi join asks for something about the right row
--- covers: Q2 LEFT SEMI JOIN; Q13 IN in ON of a semi join
SELECT o.id FROM orders AS o LEFT SEMI JOIN customers AS c ON o.customer = c.id AND c.region IN (SELECT r.name FROM regions AS r);
--- before
INSERT INTO orders VALUES (10, 1, 5), (10, 1, 5), (11, 2, 5);
INSERT INTO customers VALUES (1, 'north'), (1, 'north'), (2, 'south');
INSERT INTO regions VALUES ('north', 'here');
--- change
UPDATE regions SET name = 'south';
--- delta
-- -2 | 10
-- +1 | 11

--- case: a subquery in ON of a semi join names the right row without its table
--- covers: Q13 IN in ON of a semi join
SELECT o.id FROM orders AS o LEFT SEMI JOIN customers AS c ON o.customer = c.id AND EXISTS (SELECT * FROM regions AS r WHERE name = region);
--- before
INSERT INTO orders VALUES (10, 1, 5), (10, 1, 5), (11, 2, 5);
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO regions VALUES ('north', 'here');
--- change
UPDATE regions SET name = 'south';
--- delta
-- -2 | 10
-- +1 | 11

--- case: HAVING of a subquery names a column of the query around without its table
--- covers: Q13 names of the query around
SELECT customer, SUM(amount) AS total FROM orders
WHERE customer IN (SELECT MAX(c.id) FROM customers AS c GROUP BY region HAVING LENGTH(region) > amount) GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 4), (12, 2, 5);
INSERT INTO customers VALUES (1, 'short'), (2, 'longer');
--- change
INSERT INTO customers VALUES (1, 'longest'), (1, 'longer');
--- delta
-- -1 | 1 | 4
-- +1 | 1 | 9

--- case: an output that is called like a column of the query around
--- covers: Q13 EXISTS, correlated
--- spark: DuckDB takes an output of SELECT in WHERE
SELECT o.id FROM orders AS o WHERE EXISTS (SELECT c.id + 100 AS amount FROM customers AS c WHERE c.id = o.customer AND amount > 7);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 9);
INSERT INTO customers VALUES (1, 'north');
--- change
INSERT INTO orders VALUES (12, 1, 8), (13, 1, 7);
--- delta
-- +1 | 12
