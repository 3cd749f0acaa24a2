--- case: the first partner of EXISTS brings the row
--- covers: Q13 EXISTS
SELECT id FROM orders AS o WHERE EXISTS (SELECT 1 FROM customers AS c WHERE c.id = o.customer);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
--- change
INSERT INTO customers VALUES (1, 'north');
--- delta
-- +1 | 10

--- case: more partners of EXISTS are not more rows
--- covers: Q13 EXISTS; Q26 copies of a partner
SELECT DISTINCT customer, amount FROM orders AS o WHERE EXISTS (SELECT 1 FROM customers AS c WHERE c.id = o.customer);
--- before
INSERT INTO orders VALUES (10, 1, 5), (10, 1, 5);
INSERT INTO customers VALUES (1, 'north'), (1, 'north');
--- change
INSERT INTO customers VALUES (1, 'south');
--- delta

--- case: one of two partners of EXISTS goes and the row stays
--- covers: Q13 EXISTS
SELECT id FROM orders AS o WHERE EXISTS (SELECT 1 FROM customers AS c WHERE c.id = o.customer);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
INSERT INTO customers VALUES (1, 'north'), (1, 'south'), (2, 'north');
--- change
DELETE FROM customers WHERE region = 'north';
--- delta
-- -1 | 11

--- case: the key of a row changes and its partner of EXISTS goes in one window
--- covers: Q3 a key changes and its partner goes; Q13 EXISTS
SELECT id, customer FROM orders AS o WHERE EXISTS (SELECT 1 FROM customers AS c WHERE c.id = o.customer);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5), (12, 2, 5);
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
--- change
UPDATE orders SET customer = 2 WHERE id = 10;
UPDATE orders SET customer = 1 WHERE id = 11;
DELETE FROM customers WHERE id = 1;
--- delta
-- -1 | 10 | 1
-- +1 | 10 | 2
-- -1 | 11 | 2

--- case: the last partner of NOT EXISTS goes
--- covers: Q13 NOT EXISTS
SELECT id FROM orders AS o WHERE NOT EXISTS (SELECT 1 FROM customers AS c WHERE c.id = o.customer AND c.region = 'north');
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, NULL, 5);
INSERT INTO customers VALUES (1, 'north'), (1, 'south');
--- change
DELETE FROM customers WHERE region = 'north';
--- delta
-- +1 | 10

--- case: a row and its partner of NOT EXISTS come in one window
--- covers: Q13 NOT EXISTS
SELECT id FROM orders AS o WHERE NOT EXISTS (SELECT 1 FROM customers AS c WHERE c.id = o.customer);
--- before
INSERT INTO orders VALUES (10, 1, 5);
INSERT INTO customers VALUES (1, 'north');
--- change
INSERT INTO orders VALUES (11, 2, 5), (12, 3, 5);
INSERT INTO customers VALUES (2, 'north');
DELETE FROM customers WHERE id = 1;
--- delta
-- +1 | 10
-- +1 | 12

--- case: GROUP BY and HAVING inside EXISTS
--- covers: Q13 EXISTS over groups
SELECT id FROM customers AS c WHERE EXISTS (SELECT o.amount FROM orders AS o WHERE o.customer = c.id GROUP BY o.amount HAVING COUNT(*) > 1);
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6), (12, 2, 5), (13, 2, 5);
--- change
INSERT INTO orders VALUES (14, 1, 5);
DELETE FROM orders WHERE id = 12;
--- delta
-- +1 | 1
-- -1 | 2

--- case: an aggregate inside EXISTS is there even over no rows
--- covers: Q13 EXISTS over groups
SELECT id FROM customers AS c WHERE EXISTS (SELECT COUNT(*) FROM orders AS o WHERE o.customer = c.id);
--- before
INSERT INTO customers VALUES (1, 'north');
--- change
INSERT INTO customers VALUES (2, 'south');
--- delta
-- +1 | 2

--- case: EXISTS that does not mention the row fills and empties the table
--- covers: Q13 EXISTS by itself
SELECT id FROM orders WHERE EXISTS (SELECT 1 FROM customers WHERE region = 'north');
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
INSERT INTO customers VALUES (1, 'north'), (2, 'north');
--- change
UPDATE customers SET region = 'south';
DELETE FROM orders WHERE id = 11;
--- delta
-- -1 | 10
-- -1 | 11

--- case: EXISTS under OR
--- covers: Q13 EXISTS under OR
SELECT id FROM orders AS o WHERE o.amount > 6 OR EXISTS (SELECT 1 FROM customers AS c WHERE c.id = o.customer);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 7), (12, 2, 5);
INSERT INTO customers VALUES (1, 'north');
--- change
DELETE FROM customers;
INSERT INTO customers VALUES (2, 'north');
--- delta
-- -1 | 10
-- +1 | 12

--- case: two subqueries under OR, of two tables that both move
--- covers: Q13 EXISTS under OR; Q13 IN under OR
SELECT id FROM orders AS o WHERE EXISTS (SELECT 1 FROM customers AS c WHERE c.id = o.customer) OR o.amount IN (SELECT length(name) FROM regions);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5), (12, 3, 4);
INSERT INTO customers VALUES (1, 'north');
INSERT INTO regions VALUES ('east', 'here');
--- change
DELETE FROM customers;
INSERT INTO regions VALUES ('north', 'here');
DELETE FROM regions WHERE name = 'east';
--- delta
-- +1 | 11
-- -1 | 12

--- case: NOT EXISTS under OR and AND
--- covers: Q13 NOT EXISTS under OR
SELECT id FROM orders AS o WHERE o.amount IS NOT NULL AND (o.id = 10 OR NOT EXISTS (SELECT 1 FROM customers AS c WHERE c.id = o.customer));
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5), (12, 2, NULL), (13, 2, 5);
INSERT INTO customers VALUES (1, 'north');
--- change
DELETE FROM customers;
INSERT INTO customers VALUES (2, 'north');
--- delta
-- +1 | 11
-- -1 | 13

--- case: NOT around two subqueries, one of which is negated itself
--- covers: Q13 NOT around EXISTS and IN
SELECT id FROM orders AS o WHERE NOT (NOT EXISTS (SELECT 1 FROM customers AS c WHERE c.id = o.customer) OR o.amount IN (SELECT length(name) FROM regions));
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5), (12, 1, 4);
INSERT INTO customers VALUES (1, 'north');
INSERT INTO regions VALUES ('east', 'here');
--- change
INSERT INTO customers VALUES (2, 'south');
UPDATE regions SET name = 'north';
--- delta
-- -1 | 10
-- +1 | 12

--- case: EXISTS of no rows of an order is false
--- covers: Q13 EXISTS of a top-N
SELECT id FROM orders WHERE amount > 6 OR EXISTS (SELECT id FROM customers ORDER BY id LIMIT 0);
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO customers VALUES (1, 'north');
INSERT INTO orders VALUES (11, 1, 5), (12, 1, 7);
--- delta
-- +1 | 12

--- case: EXISTS inside EXISTS
--- covers: Q13 EXISTS inside EXISTS
SELECT id FROM orders AS o WHERE EXISTS (SELECT 1 FROM customers AS c WHERE c.id = o.customer AND EXISTS (SELECT 1 FROM regions AS r WHERE r.name = c.region));
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO regions VALUES ('north', 'here');
--- change
DELETE FROM regions;
INSERT INTO regions VALUES ('south', 'there');
--- delta
-- -1 | 10
-- +1 | 11

--- case: EXISTS with an inequality
--- covers: Q13 EXISTS
SELECT id FROM orders AS o WHERE EXISTS (SELECT 1 FROM orders AS other WHERE other.customer = o.customer AND other.amount < o.amount);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 7), (12, 2, 9);
--- change
DELETE FROM orders WHERE id = 10;
INSERT INTO orders VALUES (13, 2, 1);
--- delta
-- -1 | 11
-- +1 | 12

--- case: IN a subquery
--- covers: Q13 IN
SELECT id FROM orders WHERE customer IN (SELECT id FROM customers WHERE region = 'north');
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5), (12, NULL, 5);
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (NULL, 'north');
--- change
UPDATE customers SET region = 'north' WHERE id = 2;
DELETE FROM customers WHERE id = 1;
--- delta
-- -1 | 10
-- +1 | 11

--- case: IN a subquery that mentions the row
--- covers: Q13 IN
SELECT id FROM orders AS o WHERE o.amount IN (SELECT c.id + 4 FROM customers AS c WHERE c.id = o.customer);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
INSERT INTO customers VALUES (1, 'north');
--- change
UPDATE orders SET amount = 6;
INSERT INTO customers VALUES (2, 'south');
--- delta
-- -1 | 10
-- +1 | 11

--- case: a NULL in the set empties NOT IN
--- covers: Q13 NOT IN with NULLs
SELECT id FROM orders WHERE customer NOT IN (SELECT id FROM customers);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
INSERT INTO customers VALUES (1, 'north');
--- change
INSERT INTO customers VALUES (NULL, 'south');
--- delta
-- -1 | 11

--- case: the last NULL leaves the set of NOT IN
--- covers: Q13 NOT IN with NULLs
SELECT id FROM orders WHERE customer NOT IN (SELECT id FROM customers);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5), (12, NULL, 5);
INSERT INTO customers VALUES (1, 'north'), (NULL, 'north'), (NULL, 'south');
--- change
DELETE FROM customers WHERE id IS NULL;
--- delta
-- +1 | 11

--- case: NOT IN an empty set keeps the row whose value is NULL
--- covers: Q13 NOT IN with NULLs
SELECT id FROM orders WHERE customer NOT IN (SELECT id FROM customers);
--- before
INSERT INTO orders VALUES (10, 1, 5), (12, NULL, 5);
INSERT INTO customers VALUES (7, 'north');
--- change
DELETE FROM customers;
--- delta
-- +1 | 12

--- case: a value enters the set of NOT IN while the row comes
--- covers: Q13 NOT IN with NULLs
SELECT id, customer FROM orders WHERE customer NOT IN (SELECT id FROM customers);
--- before
INSERT INTO orders VALUES (10, 1, 5);
INSERT INTO customers VALUES (2, 'north');
--- change
INSERT INTO orders VALUES (11, 2, 5), (12, 3, 5);
INSERT INTO customers VALUES (3, 'north');
DELETE FROM customers WHERE id = 2;
--- delta
-- +1 | 11 | 2

--- case: IN with pairs compares every column
--- covers: Q13 IN with several columns
SELECT id FROM orders WHERE (customer, amount) IN (SELECT customer, amount + 1 FROM orders);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6), (12, 2, 6);
--- change
INSERT INTO orders VALUES (13, 2, 5);
DELETE FROM orders WHERE id = 10;
--- delta
-- -1 | 11
-- +1 | 12

--- case: a pair that is NULL in part is in no set
--- covers: Q13 IN with several columns; Q28 NULL in a pair
SELECT id FROM orders AS o WHERE (o.customer, o.amount) IN (SELECT c.id, length(c.region) FROM customers AS c);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, NULL), (12, 2, 5);
INSERT INTO customers VALUES (1, NULL);
--- change
INSERT INTO customers VALUES (1, 'north'), (2, NULL);
--- delta
-- +1 | 10

--- case: NOT IN with pairs that are NULL in part
--- covers: Q13 NOT IN with several columns; Q28 NULL in a pair
SELECT id FROM orders AS o WHERE (o.customer, o.amount) NOT IN (SELECT c.id, length(c.region) FROM customers AS c);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, NULL), (12, 2, 7), (13, 3, 1);
INSERT INTO customers VALUES (1, 'north');
--- change
INSERT INTO customers VALUES (2, NULL);
--- delta
-- -1 | 12

--- case: a pair of the row that is NULL in part leaves NOT IN
--- covers: Q13 NOT IN with several columns; Q28 NULL in a pair
SELECT id FROM orders AS o WHERE (o.customer, o.amount) NOT IN (SELECT c.id, length(c.region) FROM customers AS c);
--- before
INSERT INTO orders VALUES (10, 1, NULL), (11, 2, NULL);
--- change
INSERT INTO customers VALUES (1, 'north');
--- delta
-- -1 | 10

--- case: a pair in a set that lists one column twice
--- covers: Q13 IN with several columns
SELECT id FROM orders WHERE (customer, amount) IN (SELECT id, id FROM customers);
--- before
INSERT INTO orders VALUES (10, 1, 1), (11, 2, 1), (12, 2, 2);
INSERT INTO customers VALUES (1, 'north');
--- change
UPDATE customers SET id = 2;
--- delta
-- -1 | 10
-- +1 | 12

--- case: IN among the outputs is true, false or NULL
--- covers: Q13 IN in the SELECT list
SELECT id, customer IN (SELECT id FROM customers) AS known, EXISTS (SELECT 1 FROM customers AS c WHERE c.id = o.amount) AS other FROM orders AS o;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 3), (12, NULL, 5);
INSERT INTO customers VALUES (1, 'north');
--- change
INSERT INTO customers VALUES (NULL, 'south'), (3, 'south');
DELETE FROM customers WHERE id = 1;
--- delta
-- +1 | 10 | NULL | False
-- -1 | 10 | True | False
-- -1 | 11 | False | False
-- +1 | 11 | NULL | True
--- delta of Spark
-- +1 | 10 | False | False
-- -1 | 10 | True | False
-- -1 | 11 | False | False
-- +1 | 11 | False | True

--- case: subqueries inside CASE, COALESCE and the arguments of functions
--- covers: Q13 a subquery inside CASE; Q14 a scalar subquery inside an expression
SELECT id, CASE WHEN EXISTS (SELECT 1 FROM customers AS c WHERE c.id = o.customer) THEN 'known' WHEN o.amount IN (SELECT id FROM customers) THEN 'odd' ELSE 'new' END AS kind, COALESCE((SELECT MAX(c.region) FROM customers AS c WHERE c.id = o.customer), 'none') AS region, greatest(o.amount, (SELECT MAX(id) FROM customers)) AS most FROM orders AS o;
--- before
INSERT INTO orders VALUES (10, 1, 2), (11, 2, 3);
INSERT INTO customers VALUES (1, 'north'), (3, 'south');
--- change
DELETE FROM customers WHERE id = 3;
INSERT INTO customers VALUES (2, 'west');
--- delta
-- +1 | 10 | known | north | 2
-- -1 | 10 | known | north | 3
-- +1 | 11 | known | west | 3
-- -1 | 11 | odd | none | 3

--- case: IN the first rows of an order
--- covers: Q13 IN a top-N; Q21 ORDER BY with LIMIT in a subquery
SELECT id FROM orders WHERE customer IN (SELECT id FROM customers ORDER BY id DESC LIMIT 1);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5), (12, 3, 5);
INSERT INTO customers VALUES (1, 'north'), (2, 'north'), (3, 'north');
--- change
DELETE FROM customers WHERE id = 3;
--- delta
-- +1 | 11
-- -1 | 12

--- case: IN a union of two tables
--- covers: Q13 IN a set operation
SELECT id FROM orders WHERE customer IN (SELECT id FROM customers UNION SELECT length(name) FROM regions);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 5, 5);
INSERT INTO customers VALUES (1, 'north');
--- change
DELETE FROM customers;
INSERT INTO regions VALUES ('north', 'here');
--- delta
-- -1 | 10
-- +1 | 11

--- case: IN a set of groups
--- covers: Q13 IN over groups
SELECT id FROM customers WHERE id IN (SELECT customer FROM orders GROUP BY customer HAVING SUM(amount) > 9);
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'north');
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 10);
--- change
INSERT INTO orders VALUES (12, 1, 5), (13, 2, -1);
--- delta
-- +1 | 1
-- -1 | 2

--- case: IN inside an aggregate and its FILTER
--- covers: Q13 a subquery inside an aggregate; Q8 FILTER with a subquery
SELECT SUM(amount) FILTER (WHERE customer IN (SELECT id FROM customers)) AS known, SUM(CASE WHEN EXISTS (SELECT 1 FROM customers AS c WHERE c.id = o.customer) THEN 0 ELSE 1 END) AS strangers FROM orders AS o;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 7);
INSERT INTO customers VALUES (1, 'north');
--- change
UPDATE customers SET id = 2;
--- delta
-- -1 | 5 | 1
-- +1 | 7 | 1

--- case: EXISTS in the condition of a join
--- covers: Q13 a subquery in ON
SELECT o.id, c.region FROM orders AS o JOIN customers AS c ON o.customer = c.id AND EXISTS (SELECT 1 FROM regions AS r WHERE r.name = c.region);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 7);
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO regions VALUES ('north', 'here');
--- change
DELETE FROM regions;
INSERT INTO regions VALUES ('south', 'here');
DELETE FROM orders WHERE id = 10;
--- delta
-- -1 | 10 | north
-- +1 | 11 | south

--- case: EXISTS above a left join, all three tables move
--- covers: Q13 EXISTS; Q2 a chain with a subquery
SELECT o.id, c.region FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id WHERE NOT EXISTS (SELECT 1 FROM regions AS r WHERE r.name = c.region);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 7);
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO regions VALUES ('north', 'here');
--- change
DELETE FROM regions;
DELETE FROM customers WHERE id = 1;
INSERT INTO regions VALUES ('south', 'here');
--- delta
-- +1 | 10 | NULL
-- -1 | 11 | south

--- case: IN with a comparison to the row, whose answer is shown, above a join of two that move
--- covers: Q13 a subquery in the select list
SELECT o.id, o.amount IN (SELECT p.amount FROM orders AS p WHERE p.id > o.id) AS again, EXISTS (SELECT 1 FROM regions AS r WHERE r.name > c.region) AS further FROM orders AS o JOIN customers AS c ON o.customer >= c.id;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 7);
INSERT INTO customers VALUES (1, 'north');
--- change
INSERT INTO orders VALUES (12, 1, 7);
INSERT INTO customers VALUES (2, 'south');
INSERT INTO regions VALUES ('ocean', 'here');
--- delta
-- -1 | 10 | False | False
-- +1 | 10 | False | True
-- -1 | 11 | False | False
-- +1 | 11 | True | False
-- +1 | 11 | True | True
-- +1 | 12 | False | True

--- case: definitions inside of a subquery that asks for the row
--- covers: Q17 WITH in a correlated subquery; Q14 WITH in a correlated subquery
SELECT id, (WITH t(a) AS (SELECT amount FROM orders), u AS (SELECT a + 1 AS b FROM t AS y) SELECT MAX(x.b) FROM u AS x WHERE x.b > o.amount) AS m
FROM orders AS o WHERE EXISTS (WITH t2 AS (SELECT id FROM customers) SELECT 1 FROM t2 WHERE t2.id = o.customer);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 2, 9);
INSERT INTO customers VALUES (1, 'north');
--- change
INSERT INTO orders VALUES (3, 3, 12);
INSERT INTO customers VALUES (2, 'south');
--- delta
-- -1 | 1 | 10
-- +1 | 1 | 13
-- +1 | 2 | 13

--- case: EXISTS names a column in its list
--- covers: Q13 EXISTS with a list of columns
SELECT o.id FROM orders AS o WHERE NOT EXISTS (SELECT c.region FROM customers AS c WHERE c.id = o.customer);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
INSERT INTO customers VALUES (1, NULL);
--- change
UPDATE customers SET id = 2;
--- delta
-- +1 | 10
-- -1 | 11

--- case: EXISTS names columns of the row in its list, and nothing else of it
--- covers: Q13 EXISTS with a list of columns
SELECT o.id FROM orders AS o WHERE EXISTS (SELECT o.amount, o.id + c.id AS s, c.* FROM customers AS c);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
--- change
INSERT INTO customers VALUES (1, 'north');
DELETE FROM orders WHERE id = 11;
--- delta
-- +1 | 10

--- case: EXISTS inside EXISTS, both with lists
--- covers: Q13 EXISTS with a list of columns; Q13 EXISTS inside EXISTS
SELECT o.id FROM orders AS o WHERE EXISTS (SELECT c.region, o.amount FROM customers AS c WHERE c.id = o.customer AND NOT EXISTS (SELECT c.id, r.country FROM regions AS r WHERE r.name = c.region));
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO regions VALUES ('north', 'here');
--- change
UPDATE regions SET name = 'south';
--- delta
-- +1 | 10
-- -1 | 11

--- case: EXISTS of an aggregate of no rows is true
--- covers: Q13 EXISTS with a list of columns; Q28 an empty input
SELECT o.id, EXISTS (SELECT MAX(c.region) FROM customers AS c WHERE c.id = o.customer) AS always, EXISTS (SELECT MAX(c.region) AS m FROM customers AS c WHERE c.id = o.customer HAVING COUNT(*) > 1) AS several FROM orders AS o;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
INSERT INTO customers VALUES (1, 'north');
--- change
INSERT INTO customers VALUES (1, 'south');
--- delta
-- -1 | 10 | True | False
-- +1 | 10 | True | True

--- case: EXISTS of groups, whose HAVING uses a name from the list
--- covers: Q13 EXISTS with a list of columns; Q13 EXISTS over groups
SELECT o.id FROM orders AS o WHERE EXISTS (SELECT upper(c.region) AS u, COUNT(*) AS n FROM customers AS c WHERE c.id = o.customer GROUP BY upper(c.region) HAVING COUNT(*) > 1);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
INSERT INTO customers VALUES (1, 'north'), (1, 'North'), (2, 'north'), (2, 'south');
--- change
UPDATE customers SET region = 'south' WHERE region IN ('North', 'north');
--- delta
-- +1 | 11

--- case: EXISTS with a list, in HAVING
--- covers: Q13 EXISTS with a list of columns; Q4 HAVING
SELECT o.customer, COUNT(*) AS n FROM orders AS o GROUP BY o.customer HAVING EXISTS (SELECT c.region, o.customer FROM customers AS c WHERE c.id = o.customer);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
INSERT INTO customers VALUES (1, 'north');
--- change
UPDATE customers SET id = 2;
--- delta
-- -1 | 1 | 1
-- +1 | 2 | 1

--- case: EXISTS of the first rows of a list, and of none
--- covers: Q13 EXISTS with a list of columns; Q13 EXISTS of a top-N
SELECT o.id, EXISTS (SELECT c.region FROM customers AS c WHERE c.id = o.customer ORDER BY c.region LIMIT 1) AS one, EXISTS (SELECT c.region FROM customers AS c WHERE c.id = o.customer LIMIT 0) AS none FROM orders AS o;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO customers VALUES (1, 'north');
--- delta
-- -1 | 10 | False | False
-- +1 | 10 | True | False

--- case: EXISTS over rows with OFFSET
--- covers: Q13 EXISTS with LIMIT and OFFSET
SELECT id, region
FROM customers WHERE EXISTS (SELECT o.id FROM orders AS o WHERE o.amount > 5 LIMIT 1 OFFSET 2);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- +1 | 1 | a
-- +1 | 2 | d
-- +1 | 3 | b
-- +1 | 6 | c
-- +1 | 9 | e

--- case: NOT EXISTS over rows with OFFSET
--- covers: Q13 EXISTS with LIMIT and OFFSET
SELECT id FROM customers WHERE NOT EXISTS (SELECT 1 FROM orders WHERE amount > 5 LIMIT 1 OFFSET 2);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- -1 | 1
-- -1 | 3
-- -1 | 6
