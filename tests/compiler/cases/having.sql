--- case: a group crosses HAVING from below
--- covers: Q4 HAVING
SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer HAVING COUNT(*) > 1;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 5);
--- delta
-- +1 | 1 | 2

--- case: a group crosses HAVING from above
--- covers: Q4 HAVING
SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer HAVING SUM(amount) > 9;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5);
--- change
UPDATE orders SET amount = 4 WHERE id = 10;
--- delta
-- -1 | 1 | 10

--- case: a group that HAVING keeps shows its whole value, not what was added
--- covers: Q4 HAVING
SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer HAVING COUNT(*) > 1;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 7);
--- delta
-- +1 | 1 | 12

--- case: HAVING by an alias and by a key
--- covers: Q4 HAVING by an alias
SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer HAVING total > 5 AND customer < 3;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 3, 7);
--- change
UPDATE orders SET amount = amount + 1;
--- delta
-- +1 | 1 | 6

--- case: HAVING without GROUP BY keeps the one row or none
--- covers: Q4 HAVING without GROUP BY
SELECT COUNT(*) AS n FROM orders HAVING COUNT(*) > 1;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 5);
--- delta
-- +1 | 2

--- case: HAVING loses the one row
--- covers: Q4 HAVING without GROUP BY
SELECT SUM(amount) AS total FROM orders HAVING SUM(amount) IS NOT NULL;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
DELETE FROM orders;
--- delta
-- -1 | 5

--- case: HAVING on a measure and a key that are not returned
--- covers: Q4 HAVING by what is not returned
SELECT COUNT(*) AS n FROM orders GROUP BY customer HAVING MAX(amount) > 5 AND customer IS NOT NULL;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, NULL, 9);
--- change
INSERT INTO orders VALUES (12, 1, 6);
--- delta
-- +1 | 2

--- case: the group of NULL crosses HAVING
--- covers: Q4 HAVING; Q28 a NULL group key
SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer HAVING COUNT(*) = 1;
--- before
INSERT INTO orders VALUES (10, NULL, 5);
--- change
INSERT INTO orders VALUES (11, NULL, 5), (12, 1, 5);
--- delta
-- +1 | 1 | 1
-- -1 | NULL | 1

--- case: HAVING above a join
--- covers: Q4 HAVING over a join
SELECT c.region, COUNT(*) AS n FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id GROUP BY c.region HAVING COUNT(*) > 1;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5);
--- change
INSERT INTO customers VALUES (1, 'north');
--- delta
-- -1 | NULL | 2
-- +1 | north | 2

--- case: a change that WHERE keeps out touches no group, not even the one of no keys
--- covers: Q4 HAVING without GROUP BY; Q7 COUNT(DISTINCT)
SELECT COUNT(DISTINCT amount) AS amounts, COUNT(*) AS n FROM orders WHERE customer = 1 HAVING COUNT(*) >= 0;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 2, 5);
--- delta

--- case: a number is a condition: none of 0 and NULL
--- covers: Q4 HAVING over a number
SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer HAVING SUM(amount) + 1;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 0), (12, 2, -1), (13, 3, NULL);
--- change
INSERT INTO orders VALUES (14, 2, 0), (15, 3, 4);
UPDATE orders SET amount = -1 WHERE id = 10;
--- delta
-- -1 | 1 | 5
-- +1 | 3 | 4

--- case: a key as a condition
--- covers: Q4 HAVING over a number
SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer HAVING customer - 2;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 0), (12, 2, -1), (13, 3, NULL);
--- change
INSERT INTO orders VALUES (14, 2, 0), (15, 3, 4);
UPDATE orders SET amount = -1 WHERE id = 10;
--- delta
-- +1 | 1 | -1
-- -1 | 1 | 5
-- +1 | 3 | 4
-- -1 | 3 | NULL

--- case: an output as a condition
--- covers: Q4 HAVING over a number
SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer HAVING total;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 0), (12, 2, -1), (13, 3, NULL);
--- change
INSERT INTO orders VALUES (14, 2, 0), (15, 3, 4);
UPDATE orders SET amount = -1 WHERE id = 10;
--- delta
-- +1 | 1 | -1
-- -1 | 1 | 5
-- +1 | 3 | 4

--- case: a subquery's number as a condition
--- covers: Q4 HAVING over a number
SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer HAVING (SELECT MAX(amount) FROM orders);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 0), (12, 2, -1), (13, 3, NULL);
--- change
INSERT INTO orders VALUES (14, 2, 0), (15, 3, 4);
UPDATE orders SET amount = -1 WHERE id = 10;
--- delta
-- -1 | 2 | 2
-- +1 | 2 | 3
-- -1 | 3 | 1
-- +1 | 3 | 2

--- case: a window's number as the condition of QUALIFY
--- covers: Q20 QUALIFY over a number
SELECT id, amount FROM orders QUALIFY SUM(amount) OVER (PARTITION BY customer);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 0), (12, 2, -1), (13, 3, NULL);
--- change
INSERT INTO orders VALUES (14, 2, 0), (15, 3, 4);
UPDATE orders SET amount = -1 WHERE id = 10;
--- delta
-- +1 | 10 | -1
-- -1 | 10 | 5
-- +1 | 13 | NULL
-- +1 | 14 | 0
-- +1 | 15 | 4
