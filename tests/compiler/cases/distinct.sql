--- case: a second copy changes nothing
--- covers: Q10 DISTINCT
SELECT DISTINCT customer FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 6);
--- delta

--- case: only the last copy takes the row away
--- covers: Q10 DISTINCT; Q26 copies under DISTINCT
SELECT DISTINCT customer FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6), (12, 2, 6);
--- change
DELETE FROM orders WHERE id IN (10, 12);
--- delta
-- -1 | 2

--- case: the row of NULLs is one row
--- covers: Q10 DISTINCT; Q28 NULLs under DISTINCT
SELECT DISTINCT customer, amount FROM orders;
--- before
INSERT INTO orders VALUES (10, NULL, NULL);
--- change
INSERT INTO orders VALUES (11, NULL, NULL), (12, NULL, 1);
--- delta
-- +1 | NULL | 1

--- case: a row goes and comes back
--- covers: Q10 DISTINCT; R5 rows that cancel
SELECT DISTINCT region FROM customers;
--- before
INSERT INTO customers VALUES (1, 'north');
--- change
DELETE FROM customers;
INSERT INTO customers VALUES (2, 'north');
--- delta

--- case: DISTINCT of expressions over a join
--- covers: Q10 DISTINCT over a join
SELECT DISTINCT c.region, o.amount > 5 AS large FROM orders AS o JOIN customers AS c ON o.customer = c.id;
--- before
INSERT INTO customers VALUES (1, 'north');
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6);
--- change
UPDATE orders SET amount = 7 WHERE id = 10;
--- delta
-- -1 | north | False

--- case: DISTINCT above a left join
--- covers: Q10 DISTINCT over an outer join
SELECT DISTINCT c.region FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
--- change
INSERT INTO customers VALUES (1, 'north');
--- delta
-- +1 | north

--- case: DISTINCT of groups
--- covers: Q10 DISTINCT over groups
SELECT DISTINCT COUNT(*) AS n FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
--- change
INSERT INTO orders VALUES (12, 2, 5);
--- delta
-- +1 | 2

--- case: DISTINCT below an aggregate
--- covers: Q10 DISTINCT in a subquery
SELECT COUNT(*) AS customers FROM (SELECT DISTINCT customer FROM orders) AS t;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5);
--- change
INSERT INTO orders VALUES (12, 2, 5);
DELETE FROM orders WHERE id = 10;
--- delta
-- -1 | 1
-- +1 | 2

--- case: DISTINCT of a star
--- covers: Q10 DISTINCT of a star
SELECT DISTINCT * FROM customers ORDER BY id;
--- before
INSERT INTO customers VALUES (1, 'north'), (1, 'north');
--- change
DELETE FROM customers;
INSERT INTO customers VALUES (1, 'south');
--- delta
-- -1 | 1 | north
-- +1 | 1 | south

--- case: an expression with IS DISTINCT FROM in a DISTINCT list
--- covers: Q10 the word DISTINCT elsewhere; Q1 IS DISTINCT FROM
SELECT id IS DISTINCT FROM 1 AS other, COUNT(DISTINCT amount) AS n FROM orders GROUP BY id IS DISTINCT FROM 1;
--- before
INSERT INTO orders VALUES (1, 1, 5);
--- change
INSERT INTO orders VALUES (2, 1, 5), (NULL, 1, 6);
--- delta
-- +1 | True | 2

--- case: DISTINCT in the words of a common table expression, which ends in a comment
--- covers: Q10 DISTINCT in a CTE; Q17 a CTE
WITH o AS (SELECT DISTINCT customer, amount FROM orders)
SELECT DISTINCT customer, customer IS NOT DISTINCT FROM 1 AS one FROM o -- all of them;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
--- change
DELETE FROM orders WHERE id = 1;
INSERT INTO orders VALUES (2, 2, 6);
--- delta
-- +1 | 2 | False

--- case: FROM before SELECT DISTINCT
--- covers: Q1 FROM before SELECT
WITH t AS (FROM orders SELECT *) FROM t SELECT DISTINCT customer, amount WHERE amount > 1;
--- before
INSERT INTO orders VALUES (1, 1, 5);
--- change
INSERT INTO orders VALUES (2, 1, 5), (3, 2, 5);
--- delta
-- +1 | 2 | 5
