--- case: the first partner takes the padded row away
--- covers: Q2 LEFT JOIN
SELECT o.id, c.region FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO customers VALUES (1, 'north'), (1, 'south');
--- delta
-- -1 | 10 | NULL
-- +1 | 10 | north
-- +1 | 10 | south

--- case: the last partner leaves a padded row
--- covers: Q2 LEFT JOIN
SELECT o.id, c.region FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id;
--- before
INSERT INTO orders VALUES (10, 1, 5);
INSERT INTO customers VALUES (1, 'north'), (1, 'south');
--- change
DELETE FROM customers;
--- delta
-- -1 | 10 | north
-- -1 | 10 | south
-- +1 | 10 | NULL

--- case: one of two partners goes and no padded row comes
--- covers: Q2 LEFT JOIN
SELECT o.id, c.region FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id;
--- before
INSERT INTO orders VALUES (10, 1, 5);
INSERT INTO customers VALUES (1, 'north'), (1, 'south');
--- change
DELETE FROM customers WHERE region = 'north';
--- delta
-- -1 | 10 | north

--- case: a partner is replaced and the left row never stands alone
--- covers: Q2 LEFT JOIN
SELECT o.id, c.region FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id;
--- before
INSERT INTO orders VALUES (10, 1, 5);
INSERT INTO customers VALUES (1, 'north');
--- change
UPDATE customers SET region = 'south';
--- delta
-- -1 | 10 | north
-- +1 | 10 | south

--- case: both sides come in one window and nothing is padded twice
--- covers: Q2 LEFT JOIN
SELECT o.id, c.region FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id;
--- before
--- change
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
INSERT INTO customers VALUES (1, 'north');
--- delta
-- +1 | 10 | north
-- +1 | 11 | NULL

--- case: the left row changes its key while its old partner goes
--- covers: Q3 a key changes and its partner goes; Q2 LEFT JOIN
SELECT o.id, c.region FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id;
--- before
INSERT INTO orders VALUES (10, 1, 5);
INSERT INTO customers VALUES (1, 'north');
--- change
UPDATE orders SET customer = 2;
DELETE FROM customers;
--- delta
-- -1 | 10 | north
-- +1 | 10 | NULL

--- case: a left row with a NULL key stays alone
--- covers: Q28 NULL join keys; Q2 LEFT JOIN
SELECT o.id, c.region FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id;
--- before
INSERT INTO orders VALUES (10, NULL, 5);
--- change
INSERT INTO customers VALUES (NULL, 'nowhere');
INSERT INTO orders VALUES (11, NULL, 5);
--- delta
-- +1 | 11 | NULL

--- case: copies of a left row are padded and paired as often as they are there
--- covers: Q26 copies on both sides of a join; Q2 LEFT JOIN
SELECT o.id, c.region FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id;
--- before
INSERT INTO orders VALUES (10, 1, 5), (10, 1, 5);
--- change
INSERT INTO customers VALUES (1, 'north');
--- delta
-- -2 | 10 | NULL
-- +2 | 10 | north

--- case: a condition on the left side alone decides about partners, not about rows
--- covers: Q2 LEFT JOIN with more conditions
SELECT o.id, c.region FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id AND o.amount > 2;
--- before
INSERT INTO orders VALUES (10, 1, 1), (11, 1, 3);
--- change
INSERT INTO customers VALUES (1, 'north');
--- delta
-- -1 | 11 | NULL
-- +1 | 11 | north

--- case: a condition on the right side alone
--- covers: Q2 LEFT JOIN with more conditions
SELECT o.id, c.region FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id AND c.region = 'north';
--- before
INSERT INTO orders VALUES (10, 1, 1);
INSERT INTO customers VALUES (1, 'north');
--- change
UPDATE customers SET region = 'south';
--- delta
-- -1 | 10 | north
-- +1 | 10 | NULL

--- case: a left join without an equality asks every row again
--- covers: Q2 LEFT JOIN without an equality
SELECT o.id, c.id AS below FROM orders AS o LEFT JOIN customers AS c ON o.amount > c.id;
--- before
INSERT INTO orders VALUES (10, 1, 3);
--- change
INSERT INTO customers VALUES (1, 'north');
--- delta
-- -1 | 10 | NULL
-- +1 | 10 | 1

--- case: a left join on an expression of its key
--- covers: Q2 LEFT JOIN on expressions
SELECT o.id, c.region FROM orders AS o LEFT JOIN customers AS c ON o.customer + 1 = c.id * 2;
--- before
INSERT INTO orders VALUES (10, 1, 3);
--- change
INSERT INTO customers VALUES (1, 'north');
--- delta
-- -1 | 10 | NULL
-- +1 | 10 | north

--- case: a left join on either of two equalities
--- covers: Q2 LEFT JOIN without an equality
SELECT o.id, c.region FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id OR o.amount = c.id;
--- before
INSERT INTO orders VALUES (10, 1, 2), (11, 3, 3);
--- change
INSERT INTO customers VALUES (2, 'south');
--- delta
-- -1 | 10 | NULL
-- +1 | 10 | south

--- case: what a left join compares may be guarded by a CASE
--- covers: Q2 LEFT JOIN on expressions that can fail
-- 3 times 60 is too large for a TINYINT, and the query never asks for it; nor may its change.
SELECT c.id, o.id AS order_id FROM customers AS c LEFT JOIN orders AS o ON CASE WHEN c.id < 3 THEN CAST(c.id AS TINYINT) * CAST(60 AS TINYINT) END = o.amount;
--- before
INSERT INTO customers VALUES (1, 'north'), (3, 'south');
--- change
INSERT INTO orders VALUES (10, 1, 60);
--- delta
-- -1 | 1 | NULL
-- +1 | 1 | 10

--- case: what a left join compares may be guarded by another part of its condition
--- covers: Q2 LEFT JOIN on expressions that can fail
SELECT o.id, c.region FROM orders AS o LEFT JOIN customers AS c ON c.id < 3 AND o.amount = CAST(c.id AS TINYINT) * CAST(60 AS TINYINT);
--- before
INSERT INTO orders VALUES (1, 1, 60);
INSERT INTO customers VALUES (3, 'north');
--- change
INSERT INTO customers VALUES (1, 'south'), (3, 'south');
--- delta
-- -1 | 1 | NULL
-- +1 | 1 | south

--- case: what a left join compares may be guarded by the side it comes from
--- covers: Q2 LEFT JOIN on expressions that can fail
SELECT o.id, t.region FROM orders AS o LEFT JOIN (SELECT id, region FROM customers WHERE id < 3) AS t ON o.amount = CAST(t.id AS TINYINT) * CAST(60 AS TINYINT);
--- before
INSERT INTO orders VALUES (1, 1, 60);
INSERT INTO customers VALUES (3, 'north');
--- change
INSERT INTO customers VALUES (1, 'south'), (3, 'south');
--- delta
-- -1 | 1 | NULL
-- +1 | 1 | south

--- case: a left join of a table to itself
--- covers: Q2 a self join; Q2 LEFT JOIN
SELECT a.id, b.id AS follower FROM orders AS a LEFT JOIN orders AS b ON b.customer = a.id;
--- before
INSERT INTO orders VALUES (1, 0, 0);
--- change
INSERT INTO orders VALUES (2, 1, 0);
--- delta
-- -1 | 1 | NULL
-- +1 | 1 | 2
-- +1 | 2 | NULL

--- case: rows without a partner are found by IS NULL
--- covers: Q2 LEFT JOIN with IS NULL
SELECT o.id FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id WHERE c.id IS NULL;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
INSERT INTO customers VALUES (1, 'north');
--- change
UPDATE customers SET id = 2;
--- delta
-- +1 | 10
-- -1 | 11

--- case: COALESCE over a padded row
--- covers: Q2 LEFT JOIN with COALESCE
SELECT o.id, COALESCE(c.region, 'none') AS region FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO customers VALUES (1, NULL);
--- delta

--- case: two left joins in a chain, all three tables change
--- covers: Q2 a chain of LEFT JOINs; Q2 three tables move
SELECT o.id, c.region, r.country FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id LEFT JOIN regions AS r ON c.region = r.name;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
INSERT INTO customers VALUES (1, 'north');
INSERT INTO regions VALUES ('north', 'N'), ('south', 'S');
--- change
INSERT INTO customers VALUES (2, 'south');
UPDATE customers SET region = 'east' WHERE id = 1;
DELETE FROM regions WHERE name = 'south';
--- delta
-- -1 | 10 | north | N
-- +1 | 10 | east | NULL
-- -1 | 11 | NULL | NULL
-- +1 | 11 | south | NULL

--- case: an inner join above a left join drops what was padded
--- covers: Q2 a chain of joins of several kinds
SELECT o.id, r.country FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id JOIN regions AS r ON c.region = r.name;
--- before
INSERT INTO orders VALUES (10, 1, 5);
INSERT INTO regions VALUES ('north', 'N');
--- change
INSERT INTO customers VALUES (1, 'north');
--- delta
-- +1 | 10 | N

--- case: left joins onto the least and the most of groups
--- covers: Q2 a chain of LEFT JOINs; Q6 MIN and MAX below a LEFT JOIN
SELECT c.id, a.least, b.most FROM customers AS c LEFT JOIN (SELECT customer, MIN(amount) AS least FROM orders GROUP BY customer) AS a ON a.customer = c.id LEFT JOIN (SELECT customer, MAX(amount) AS most FROM orders GROUP BY customer) AS b ON b.customer = c.id;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 7);
--- change
DELETE FROM orders WHERE id = 11;
INSERT INTO orders VALUES (12, 2, 1);
--- delta
-- -1 | 1 | 5 | 7
-- +1 | 1 | 5 | 5
-- -1 | 2 | NULL | NULL
-- +1 | 2 | 1 | 1

--- case: RIGHT JOIN keeps the right rows, and its columns in their order
--- covers: Q2 RIGHT JOIN
SELECT * FROM regions AS r RIGHT JOIN customers AS c ON c.region = r.name AND c.id > 1;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'north');
--- change
INSERT INTO regions VALUES ('north', 'N');
--- delta
-- -1 | NULL | NULL | 2 | north
-- +1 | north | N | 2 | north

--- case: the right rows of a RIGHT JOIN are padded and paired
--- covers: Q2 RIGHT JOIN
SELECT c.region, o.id AS order_id, o.customer FROM customers AS c RIGHT JOIN orders AS o ON o.customer = c.id;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO customers VALUES (1, 'north'), (3, 'south');
INSERT INTO orders VALUES (11, 2, 5);
--- delta
-- -1 | NULL | 10 | 1
-- +1 | north | 10 | 1
-- +1 | NULL | 11 | 2

--- case: FULL JOIN pads both sides
--- covers: Q2 FULL JOIN
SELECT o.id, c.id AS customer FROM orders AS o FULL JOIN customers AS c ON o.customer = c.id;
--- before
INSERT INTO orders VALUES (10, 1, 5);
INSERT INTO customers VALUES (2, 'south');
--- change
INSERT INTO orders VALUES (11, 2, 5);
INSERT INTO customers VALUES (1, 'north'), (3, 'south');
--- delta
-- -1 | 10 | NULL
-- +1 | 10 | 1
-- -1 | NULL | 2
-- +1 | 11 | 2
-- +1 | NULL | 3

--- case: both sides of a FULL JOIN come and go at once
--- covers: Q2 FULL JOIN; Q3 rows go on several sides
SELECT o.id, c.id AS customer FROM orders AS o FULL OUTER JOIN customers AS c ON o.customer = c.id;
--- before
INSERT INTO orders VALUES (10, 1, 5);
INSERT INTO customers VALUES (1, 'north');
--- change
DELETE FROM orders;
DELETE FROM customers;
INSERT INTO orders VALUES (12, 4, 5);
INSERT INTO customers VALUES (4, 'north');
--- delta
-- -1 | 10 | 1
-- +1 | 12 | 4

--- case: NULL keys of a FULL JOIN stay apart
--- covers: Q28 NULL join keys; Q2 FULL JOIN
SELECT o.id, c.region FROM orders AS o FULL JOIN customers AS c ON o.customer = c.id;
--- before
INSERT INTO orders VALUES (10, NULL, 5);
--- change
INSERT INTO customers VALUES (NULL, 'nowhere');
--- delta
-- +1 | NULL | nowhere

--- case: FULL JOIN USING shows the key of whichever side is there
--- covers: Q2 FULL JOIN; Q2 USING
SELECT id, amount, region FROM orders FULL JOIN customers USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5);
--- change
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
--- delta
-- -1 | 1 | 5 | NULL
-- +1 | 1 | 5 | north
-- +1 | 2 | NULL | south

--- case: LEFT JOIN USING twice
--- covers: Q2 a chain of LEFT JOINs; Q2 USING
SELECT id, amount, region, country FROM orders LEFT JOIN customers USING (id) LEFT JOIN (SELECT 1 AS id, country FROM regions) AS r USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5);
INSERT INTO customers VALUES (1, 'north');
--- change
INSERT INTO regions VALUES ('north', 'N');
--- delta
-- -1 | 1 | 5 | north | NULL
-- +1 | 1 | 5 | north | N

--- case: FULL JOIN without an equality
--- covers: Q2 FULL JOIN without an equality
SELECT o.id, c.id AS below FROM orders AS o FULL JOIN customers AS c ON o.amount > c.id;
--- before
INSERT INTO orders VALUES (10, 1, 3);
--- change
INSERT INTO customers VALUES (1, 'north'), (4, 'south');
--- delta
-- -1 | 10 | NULL
-- +1 | 10 | 1
-- +1 | NULL | 4

--- case: counts above a FULL JOIN
--- covers: Q2 FULL JOIN; Q5 aggregates over a join
SELECT COUNT(*) AS pairs, COUNT(o.id) AS orders_, COUNT(c.id) AS customers_ FROM orders AS o FULL JOIN customers AS c ON o.customer = c.id;
--- before
INSERT INTO orders VALUES (10, 1, 3);
--- change
INSERT INTO customers VALUES (1, 'north'), (4, 'south');
--- delta
-- -1 | 1 | 1 | 0
-- +1 | 2 | 1 | 2

--- case: a FULL JOIN of which no column is read
--- covers: Q2 FULL JOIN
SELECT COUNT(*) AS pairs FROM orders AS o FULL JOIN customers AS c ON true;
--- before
INSERT INTO orders VALUES (10, 1, 3);
--- change
INSERT INTO customers VALUES (1, 'north'), (4, 'south');
--- delta
-- -1 | 1
-- +1 | 2

--- case: a sum above a FULL JOIN of nothing but padding is NULL
--- covers: Q2 FULL JOIN; Q5 aggregates over a join
SELECT c.region, SUM(o.amount) AS total FROM orders AS o FULL JOIN customers AS c ON o.customer = c.id GROUP BY c.region;
--- before
INSERT INTO customers VALUES (1, 'north');
INSERT INTO orders VALUES (10, 1, 0);
--- change
DELETE FROM orders;
--- delta
-- -1 | north | 0
-- +1 | north | NULL

--- case: counting rows above a left join counts padded rows too
--- covers: Q2 LEFT JOIN; Q5 aggregates over a join
SELECT o.customer, COUNT(*) AS rows_, COUNT(c.id) AS partners FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id GROUP BY o.customer;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
INSERT INTO customers VALUES (1, 'north');
--- change
DELETE FROM customers;
--- delta
-- -1 | 1 | 1 | 1
-- +1 | 1 | 1 | 0

--- case: a FULL JOIN in a chain
--- covers: Q2 a chain of joins of several kinds; Q2 FULL JOIN
SELECT o.id, c.region, r.country FROM orders AS o FULL JOIN customers AS c ON o.customer = c.id FULL JOIN regions AS r ON c.region = r.name;
--- before
INSERT INTO orders VALUES (10, 1, 5);
INSERT INTO regions VALUES ('north', 'N');
--- change
INSERT INTO customers VALUES (1, 'north');
DELETE FROM orders;
--- delta
-- -1 | 10 | NULL | NULL
-- -1 | NULL | NULL | N
-- +1 | NULL | north | N

--- case: a left join with a join in parentheses
--- covers: Q2 outer joins with joins in parentheses
SELECT o.id, c.region, r.country FROM orders AS o LEFT JOIN (customers AS c JOIN regions AS r ON c.region = r.name) ON o.customer = c.id AND r.country <> 'x';
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 2, 6);
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO regions VALUES ('north', 'x');
--- change
UPDATE regions SET country = 'y';
--- delta
-- -1 | 1 | NULL | NULL
-- +1 | 1 | north | y

--- case: a full join with an outer join in parentheses
--- covers: Q2 outer joins with joins in parentheses
SELECT o.id, c.id AS c, r.name FROM orders AS o FULL JOIN (customers AS c RIGHT JOIN regions AS r ON c.region = r.name) ON o.customer = c.id;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 2, 6);
INSERT INTO customers VALUES (1, 'north');
--- change
INSERT INTO regions VALUES ('north', 'x'), ('south', 'x');
--- delta
-- -1 | 1 | NULL | NULL
-- +1 | 1 | 1 | north
-- +1 | NULL | NULL | south

--- case: parentheses in parentheses, and a join after them
--- covers: Q2 outer joins with joins in parentheses
SELECT o.id, r.name, l.account, p.id AS p FROM orders AS o
LEFT JOIN (customers AS c JOIN (regions AS r LEFT JOIN ledger AS l ON r.name = l.note) ON c.region = r.name) ON o.customer = c.id
JOIN orders AS p ON o.id = p.id AND coalesce(l.account, 0) < 5;
--- before
INSERT INTO orders VALUES (1, 1, 5);
INSERT INTO customers VALUES (1, 'north');
INSERT INTO regions VALUES ('north', 'x');
--- change
INSERT INTO ledger VALUES (3, 1.5, 'north'), (7, 1.5, 'north');
--- delta
-- -1 | 1 | north | NULL | 1
-- +1 | 1 | north | 3 | 1

--- case: a left join in the parentheses of an inner one
--- covers: Q2 joins with outer joins in parentheses
SELECT o.id, r.country FROM orders AS o JOIN (customers AS c LEFT JOIN regions AS r ON c.region = r.name) ON o.customer = c.id WHERE o.amount > 1;
--- before
INSERT INTO orders VALUES (1, 1, 5);
INSERT INTO customers VALUES (1, 'north');
--- change
INSERT INTO regions VALUES ('north', 'x');
--- delta
-- -1 | 1 | NULL
-- +1 | 1 | x

--- case: an outer join by a collation
--- covers: Q28 joins by a collation
SELECT c.id, r.name FROM customers AS c FULL JOIN regions AS r ON c.region COLLATE UTF8_LCASE = r.name;
--- before
INSERT INTO customers VALUES (1, 'North'), (2, 'west');
INSERT INTO regions VALUES ('SOUTH', 'x');
--- change
INSERT INTO regions VALUES ('NORTH', 'y');
INSERT INTO customers VALUES (3, 'south');
--- delta
-- -1 | 1 | NULL
-- +1 | 1 | NORTH
-- -1 | NULL | SOUTH
-- +1 | 3 | SOUTH

--- case: a left join with parentheses that is matched by names
--- covers: Q2 USING beside parentheses
SELECT id, c.region, country, (SELECT COUNT(*) FROM orders AS p WHERE p.customer = c.id) AS n FROM orders AS o LEFT JOIN (customers AS c JOIN regions AS r ON c.region = r.name) USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
INSERT INTO customers VALUES (1, 'a'), (2, 'b');
INSERT INTO regions VALUES ('a', 'x');
--- change
DELETE FROM regions WHERE name = 'a';
INSERT INTO regions VALUES ('b', 'y');
--- delta
-- -1 | 1 | a | x | 2
-- +1 | 1 | NULL | NULL | 0
-- -1 | 2 | NULL | NULL | 0
-- +1 | 2 | b | y | 0

--- case: full joins with parentheses that are matched by names
--- covers: Q2 USING beside parentheses; Q2 FULL JOIN
SELECT id, o.id AS one, c.id AS two, d.id AS three FROM orders AS o FULL JOIN (customers AS c FULL JOIN (SELECT amount AS id FROM orders) AS d USING (id)) USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5);
INSERT INTO customers VALUES (2, 'a');
--- change
INSERT INTO customers VALUES (5, 'a'), (1, 'b');
--- delta
-- -1 | 1 | 1 | NULL | NULL
-- +1 | 1 | 1 | 1 | NULL
-- -1 | 5 | NULL | NULL | 5
-- +1 | 5 | NULL | 5 | 5

--- case: all columns of tables in parentheses that are matched by names
--- covers: Q2 t.* of a join in parentheses that matches columns by name
WITH shown AS (SELECT name, country AS place FROM regions) SELECT o.id AS o, C.*, x.* EXCEPT (name) FROM orders AS o LEFT JOIN (customers AS c JOIN shown AS x ON c.region = x.name) USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
INSERT INTO customers VALUES (1, 'a');
INSERT INTO regions VALUES ('a', 'here');
--- change
INSERT INTO customers VALUES (2, 'a');
--- delta
-- -1 | 2 | NULL | NULL | NULL
-- +1 | 2 | 2 | a | here

--- case: all columns of derived tables in parentheses that are matched by names
--- covers: Q2 t.* of a join in parentheses that matches columns by name
SELECT d.*, o.customer, e.b FROM orders AS o NATURAL JOIN (customers AS c JOIN (SELECT region AS id, COUNT(*) AS n FROM customers GROUP BY region) AS d(r, n) ON c.region = d.r JOIN (SELECT id AS b FROM orders) AS e ON e.b = c.id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
INSERT INTO customers VALUES (1, 'a'), (2, 'a');
--- change
DELETE FROM customers WHERE id = 1;
--- delta
-- -1 | a | 2 | 1 | 1
-- -1 | a | 2 | 1 | 2
-- +1 | a | 1 | 1 | 2

--- case: a derived table first in parentheses that are matched by names
--- covers: Q2 outer joins with joins in parentheses
SELECT o.id AS o, d.*, r.country FROM orders AS o LEFT JOIN ((SELECT id, region AS k FROM customers) AS d JOIN regions AS r ON d.k = r.name) USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
INSERT INTO customers VALUES (1, 'a');
INSERT INTO regions VALUES ('a', 'here');
--- change
INSERT INTO customers VALUES (2, 'a');
--- delta
-- -1 | 2 | NULL | NULL | NULL
-- +1 | 2 | 2 | a | here

--- case: a derived table first in parentheses
--- covers: Q2 outer joins with joins in parentheses
SELECT q.id, d.c, r.country FROM (SELECT id FROM orders) AS q FULL JOIN ((SELECT id AS c, region AS k FROM customers) AS d LEFT JOIN regions AS r ON d.k = r.name) ON d.c = q.id;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
INSERT INTO customers VALUES (1, 'a'), (3, 'b');
INSERT INTO regions VALUES ('a', 'here');
--- change
INSERT INTO customers VALUES (2, 'a');
INSERT INTO regions VALUES ('b', 'there');
--- delta
-- -1 | 2 | NULL | NULL
-- +1 | 2 | 2 | here
-- -1 | NULL | 3 | NULL
-- +1 | NULL | 3 | there

--- case: a column of two tables in parentheses, by which they are matched
--- covers: Q2 USING with a column of two tables in parentheses
--- spark: DuckDB calls the column ambiguous
SELECT o.id AS o, c.region, d.region AS other FROM orders AS o LEFT JOIN (customers AS c JOIN customers AS d ON c.id = d.id - 1) USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
INSERT INTO customers VALUES (1, 'a'), (2, 'b');
--- change
INSERT INTO customers VALUES (3, 'c');
--- delta
-- -1 | 2 | NULL | NULL
-- +1 | 2 | b | c

--- case: ON of a LEFT JOIN asks whether the right row has no partner elsewhere
--- covers: Q2 LEFT JOIN; Q13 EXISTS in ON of an outer join
SELECT o.id, c.region FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id AND NOT EXISTS (SELECT * FROM regions AS r WHERE r.name = c.region);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO regions VALUES ('north', 'here');
--- change
DELETE FROM regions;
INSERT INTO regions VALUES ('south', 'here');
--- delta
-- -1 | 10 | NULL
-- +1 | 10 | north
-- +1 | 11 | NULL
-- -1 | 11 | south

--- case: ON of a LEFT JOIN asks for something about the left row, which is padded without it
--- covers: Q2 LEFT JOIN; Q13 EXISTS in ON of an outer join
SELECT o.id, c.region FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id AND EXISTS (SELECT * FROM ledger AS l WHERE l.account = o.id);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5), (12, 1, 5);
INSERT INTO customers VALUES (1, 'north');
INSERT INTO ledger VALUES (10, 1, 'a'), (10, 2, 'b'), (11, 1, 'c');
--- change
DELETE FROM ledger WHERE note IN ('a', 'c');
INSERT INTO ledger VALUES (12, 1, 'd');
--- delta
-- +1 | 11 | NULL
-- -1 | 11 | north
-- -1 | 12 | NULL
-- +1 | 12 | north

--- case: ON of a LEFT JOIN compares the left row with a value of a subquery
--- covers: Q2 LEFT JOIN; Q14 a scalar subquery in ON of an outer join
SELECT o.id, c.region FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id AND o.amount > (SELECT MAX(total) FROM ledger);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 7);
INSERT INTO customers VALUES (1, 'north');
INSERT INTO ledger VALUES (10, 6, 'a');
--- change
INSERT INTO ledger VALUES (10, 7, 'b');
--- delta
-- +1 | 11 | NULL
-- -1 | 11 | north

--- case: ON of a LEFT JOIN has NOT IN over the right row, to which a NULL gives no answer
--- covers: Q2 LEFT JOIN; Q13 NOT IN in ON of an outer join; Q28 NULL in NOT IN
SELECT o.id, c.region FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id AND c.region NOT IN (SELECT name FROM regions);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 7), (12, 3, 7);
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (3, NULL);
INSERT INTO regions VALUES (NULL, 'here');
--- change
UPDATE regions SET name = 'north';
--- delta
-- -1 | 11 | NULL
-- +1 | 11 | south

--- case: ON of a LEFT JOIN has a subquery beside OR
--- covers: Q2 LEFT JOIN; Q13 EXISTS under OR in ON of an outer join
SELECT o.id, c.id AS customer FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id AND (EXISTS (SELECT * FROM ledger AS l WHERE l.account = o.id) OR c.region IN (SELECT name FROM regions));
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO ledger VALUES (10, 1, 'a');
--- change
DELETE FROM ledger;
INSERT INTO regions VALUES ('south', 'here');
--- delta
-- -1 | 10 | 1
-- +1 | 10 | NULL
-- +1 | 11 | 2
-- -1 | 11 | NULL

--- case: ON of a RIGHT JOIN asks for something about either side
--- covers: Q2 RIGHT JOIN; Q13 EXISTS in ON of an outer join
SELECT o.id, c.region FROM orders AS o RIGHT JOIN customers AS c ON o.customer = c.id AND EXISTS (SELECT l.note FROM ledger AS l WHERE l.account = o.id) AND NOT EXISTS (SELECT 1 FROM regions AS r WHERE r.name = c.region);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO ledger VALUES (10, 1, 'a'), (11, 1, 'a');
--- change
DELETE FROM ledger WHERE account = 10;
INSERT INTO regions VALUES ('south', 'here');
--- delta
-- -1 | 10 | north
-- -1 | 11 | south
-- +1 | NULL | north
-- +1 | NULL | south

--- case: ON of a FULL JOIN asks for something about either side, and both are padded
--- covers: Q2 FULL JOIN; Q13 EXISTS in ON of an outer join
SELECT o.id, c.region FROM orders AS o FULL JOIN customers AS c ON o.customer = c.id AND EXISTS (SELECT l.note FROM ledger AS l WHERE l.account = o.id) AND NOT EXISTS (SELECT 1 FROM regions AS r WHERE r.name = c.region);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO ledger VALUES (10, 1, 'a');
--- change
INSERT INTO ledger VALUES (11, 1, 'a');
INSERT INTO regions VALUES ('north', 'here');
--- delta
-- -1 | 10 | north
-- +1 | 10 | NULL
-- -1 | 11 | NULL
-- +1 | 11 | south
-- +1 | NULL | north
-- -1 | NULL | south

--- case: two outer joins in a chain, each with a subquery in ON
--- covers: Q2 LEFT JOIN; Q13 EXISTS in ON of an outer join
SELECT o.id, c.region, l.total FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id AND EXISTS (SELECT r.country FROM regions AS r WHERE r.name = c.region) LEFT JOIN ledger AS l ON l.account = o.id AND NOT EXISTS (SELECT s.price FROM sales AS s WHERE s.product = c.region);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO regions VALUES ('north', 'here');
INSERT INTO sales(product) VALUES ('north');
INSERT INTO ledger VALUES (10, 1, 'a'), (11, 2, 'b');
--- change
DELETE FROM regions;
INSERT INTO regions VALUES ('south', 'here');
INSERT INTO sales(product) VALUES ('south');
--- delta
-- +1 | 10 | NULL | 1.0000
-- -1 | 10 | north | NULL
-- -1 | 11 | NULL | 2.0000
-- +1 | 11 | south | NULL

--- case: a LEFT JOIN LATERAL compares with a value of a subquery in ON
--- covers: Q15 LEFT JOIN LATERAL; Q14 a scalar subquery in ON of an outer join
--- spark: DuckDB takes no subquery in ON of a LATERAL join
SELECT o.id, x.region FROM orders AS o LEFT JOIN LATERAL (SELECT c.region FROM customers AS c WHERE c.id = o.customer) AS x ON o.amount > (SELECT MAX(l.total) FROM ledger AS l);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 7);
INSERT INTO customers VALUES (1, 'north');
INSERT INTO ledger VALUES (10, 6, 'a');
--- change
INSERT INTO ledger VALUES (10, 7, 'b');
--- delta
-- +1 | 11 | NULL
-- -1 | 11 | north
