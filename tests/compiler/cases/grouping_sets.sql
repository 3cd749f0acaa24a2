--- case: groups of two kinds in one table
--- covers: Q9 GROUPING SETS
SELECT customer, amount, COUNT(*) AS n FROM orders GROUP BY GROUPING SETS ((customer), (amount));
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6);
--- change
INSERT INTO orders VALUES (12, 2, 5);
DELETE FROM orders WHERE id = 11;
--- delta
-- +1 | 1 | NULL | 1
-- -1 | 1 | NULL | 2
-- +1 | 2 | NULL | 1
-- -1 | NULL | 5 | 1
-- +1 | NULL | 5 | 2
-- -1 | NULL | 6 | 1

--- case: a key that is NULL is another group than a key that is left out
--- covers: Q9 GROUPING(); Q28 a NULL key of a grouping set
SELECT customer, amount, GROUPING(customer) AS no_customer, COUNT(*) AS n FROM orders GROUP BY GROUPING SETS ((customer), (amount));
--- before
INSERT INTO orders VALUES (10, NULL, 5), (11, 1, NULL);
--- change
INSERT INTO orders VALUES (12, NULL, NULL);
--- delta
-- -1 | NULL | NULL | 0 | 1
-- +1 | NULL | NULL | 0 | 2
-- -1 | NULL | NULL | 1 | 1
-- +1 | NULL | NULL | 1 | 2

--- case: ROLLUP, from the parts to the whole
--- covers: Q9 ROLLUP
SELECT customer, amount, SUM(amount) AS total, GROUPING_ID(customer, amount) AS level FROM orders GROUP BY ROLLUP (customer, amount) HAVING COUNT(*) > 0;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 6);
--- change
UPDATE orders SET amount = 7 WHERE id = 11;
--- delta
-- -1 | 2 | 6 | 6 | 0
-- +1 | 2 | 7 | 7 | 0
-- -1 | 2 | NULL | 6 | 1
-- +1 | 2 | NULL | 7 | 1
-- -1 | NULL | NULL | 11 | 3
-- +1 | NULL | NULL | 12 | 3

--- case: the rows of ROLLUP go with their last row
--- covers: Q9 ROLLUP
--- spark: DuckDB has a total even over no rows; in Spark a grouping set has no groups without rows
SELECT customer, COUNT(*) AS n FROM orders GROUP BY ROLLUP (customer);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 6);
--- change
DELETE FROM orders;
--- delta
-- -1 | 1 | 1
-- -1 | 2 | 1
-- -1 | NULL | 2

--- case: CUBE has every combination
--- covers: Q9 CUBE
SELECT customer, amount, COUNT(*) AS n, GROUPING_ID() AS level FROM orders GROUP BY CUBE (customer, amount) HAVING COUNT(*) > 0;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 6);
--- change
DELETE FROM orders WHERE id = 10;
INSERT INTO orders VALUES (12, 2, 5);
--- delta
-- -1 | 1 | 5 | 1 | 0
-- -1 | 1 | NULL | 1 | 1
-- +1 | 2 | 5 | 1 | 0
-- -1 | 2 | NULL | 1 | 1
-- +1 | 2 | NULL | 2 | 1

--- case: WITH ROLLUP after the keys
--- covers: Q9 WITH ROLLUP and WITH CUBE
--- spark: DuckDB has only ROLLUP (...)
SELECT customer, MAX(amount) AS most FROM orders GROUP BY customer WITH ROLLUP;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 6);
--- change
DELETE FROM orders WHERE id = 11;
--- delta
-- -1 | 2 | 6
-- -1 | NULL | 6
-- +1 | NULL | 5

--- case: a set that is listed twice has its groups twice
--- covers: Q9 GROUPING SETS
SELECT customer, COUNT(*) AS n FROM orders GROUP BY GROUPING SETS ((customer), (customer), (amount));
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 5), (12, 2, 7);
--- delta
-- -2 | 1 | 1
-- +2 | 1 | 2
-- +2 | 2 | 1
-- +1 | NULL | 2

--- case: a plain key beside a ROLLUP
--- covers: Q9 a key beside ROLLUP
SELECT customer, amount, COUNT(*) AS n FROM orders GROUP BY customer, ROLLUP (amount);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6);
--- change
UPDATE orders SET customer = 2 WHERE id = 11;
--- delta
-- -1 | 1 | 6 | 1
-- +1 | 1 | NULL | 1
-- -1 | 1 | NULL | 2
-- +1 | 2 | 6 | 1
-- +1 | 2 | NULL | 1

--- case: distinct counts and averages of grouping sets
--- covers: Q9 GROUPING SETS; Q8 DISTINCT in a grouping set
SELECT customer, COUNT(DISTINCT amount) AS amounts, AVG(amount) AS mean FROM orders GROUP BY GROUPING SETS ((customer), (id));
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5);
--- change
UPDATE orders SET amount = 7 WHERE id = 11;
--- delta
-- -1 | 1 | 1 | 5
-- +1 | 1 | 2 | 6
-- -1 | NULL | 1 | 5
-- +1 | NULL | 1 | 7

--- case: HAVING looks at the level
--- covers: Q9 GROUPING(); Q4 HAVING
SELECT customer, amount, COUNT(*) AS n FROM orders GROUP BY ROLLUP (customer, amount) HAVING GROUPING(amount) = 1 AND COUNT(*) > 1;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 6);
--- delta
-- +1 | 1 | NULL | 2
-- +1 | NULL | NULL | 2

--- case: grouping sets of expressions over a join
--- covers: Q9 GROUPING SETS over a join
SELECT c.region, o.amount > 5 AS large, SUM(o.amount) AS total FROM orders AS o JOIN customers AS c ON o.customer = c.id GROUP BY GROUPING SETS ((c.region), (o.amount > 5));
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 6);
--- change
UPDATE orders SET customer = 2 WHERE id = 10;
DELETE FROM customers WHERE id = 1;
--- delta
-- -1 | north | NULL | 5
-- +1 | south | NULL | 11
-- -1 | south | NULL | 6

--- case: groups over grouping sets
--- covers: Q9 a subquery of grouping sets
SELECT n, COUNT(*) AS groups_ FROM (SELECT COUNT(*) AS n FROM orders GROUP BY GROUPING SETS ((customer), (amount))) AS t GROUP BY n;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6);
--- change
INSERT INTO orders VALUES (12, 2, 6);
--- delta
-- -1 | 2 | 1
-- +1 | 2 | 2

--- case: GROUP BY ALL
--- covers: Q4 GROUP BY ALL
SELECT customer, amount > 5 AS large, COUNT(*) AS n FROM orders GROUP BY ALL;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6);
--- change
UPDATE orders SET amount = 7 WHERE id = 10;
--- delta
-- -1 | 1 | False | 1
-- -1 | 1 | True | 1
-- +1 | 1 | True | 2

--- case: the empty set alone has its row over no rows
--- covers: Q9 GROUPING SETS
SELECT COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY GROUPING SETS (());
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
DELETE FROM orders;
--- delta
-- +1 | 0 | NULL
-- -1 | 1 | 5

--- case: a key in parentheses is the key
--- covers: Q9 keys in parentheses; Q4 keys in parentheses
SELECT customer IS NULL AS nobody, (amount + 1) AS more, GROUPING((amount + 1)) AS g, GROUPING(customer IS NULL) AS h, COUNT(*) AS n FROM orders GROUP BY (customer IS NULL), ROLLUP ((amount + 1));
--- before
INSERT INTO orders VALUES (1, 1, 4), (2, NULL, 4);
--- change
INSERT INTO orders VALUES (3, NULL, 4);
--- delta
-- -1 | True | 5 | 0 | 0 | 1
-- +1 | True | 5 | 0 | 0 | 2
-- -1 | True | NULL | 1 | 0 | 1
-- +1 | True | NULL | 1 | 0 | 2

--- case: sets of keys by their numbers
--- covers: Q4 ordinals in ROLLUP, CUBE and GROUPING SETS
SELECT customer, amount > 5 AS large, COUNT(*) AS n FROM orders GROUP BY ROLLUP (1, (2)) HAVING COUNT(*) > 0 UNION ALL SELECT customer, amount > 5, COUNT(*) FROM orders GROUP BY CUBE (1), (2) UNION ALL SELECT customer, NULL, COUNT(*) FROM orders GROUP BY GROUPING SETS ((1), ()) HAVING COUNT(*) > 0;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 9), (12, 2, 9);
--- change
DELETE FROM orders WHERE id = 12;
INSERT INTO orders VALUES (13, 1, 3);
--- delta
-- +1 | NULL | False | 2
-- +1 | NULL | True | 1
-- +2 | 1 | False | 2
-- +2 | 1 | NULL | 3
-- -1 | NULL | False | 1
-- -1 | NULL | True | 2
-- -2 | 1 | False | 1
-- -2 | 1 | NULL | 2
-- -2 | 2 | NULL | 1
-- -2 | 2 | True | 1

--- case: a key by its number, in parentheses
--- covers: Q3 ordinals in parentheses
SELECT customer % 2 AS odd, COUNT(*) AS n FROM orders GROUP BY (1);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 9);
--- change
INSERT INTO orders VALUES (12, 3, 3);
--- delta
-- +1 | 1 | 2
-- -1 | 1 | 1

--- case: keys before GROUPING SETS, of which each set has its own alone
--- covers: Q9 keys before GROUPING SETS
--- spark: DuckDB has no keys before GROUPING SETS
SELECT customer, amount, id, COUNT(*) AS n, GROUPING_ID() AS g FROM orders GROUP BY customer, amount, id GROUPING SETS ((customer), (amount), ());
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6);
--- change
INSERT INTO orders VALUES (12, 2, 5);
DELETE FROM orders WHERE id = 11;
--- delta
-- +1 | 1 | NULL | NULL | 1 | 3
-- -1 | 1 | NULL | NULL | 2 | 3
-- +1 | 2 | NULL | NULL | 1 | 3
-- -1 | NULL | 5 | NULL | 1 | 5
-- +1 | NULL | 5 | NULL | 2 | 5
-- -1 | NULL | 6 | NULL | 1 | 5

--- case: keys before GROUPING SETS by their numbers and outputs
--- covers: Q9 keys before GROUPING SETS; Q4 ordinals in ROLLUP, CUBE and GROUPING SETS
--- spark: DuckDB has no keys before GROUPING SETS
SELECT customer AS c, amount + 1 AS a, COUNT(*) AS n FROM orders GROUP BY 1, a GROUPING SETS ((1), (c, a), (id));
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6);
--- change
INSERT INTO orders VALUES (12, 2, 5);
DELETE FROM orders WHERE id = 11;
--- delta
-- -1 | 1 | 7 | 1
-- +1 | 1 | NULL | 1
-- -1 | 1 | NULL | 2
-- +1 | 2 | 6 | 1
-- +1 | 2 | NULL | 1

--- case: a set that has no key of those before it, over no rows
--- covers: Q9 keys before GROUPING SETS
--- spark: DuckDB has no keys before GROUPING SETS
SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer GROUPING SETS (());
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6);
--- change
DELETE FROM orders;
--- delta
-- -1 | NULL | 2

--- case: the id of the set as a column
--- covers: Q9 grouping__id
--- spark: DuckDB has no grouping__id
SELECT customer, amount, COUNT(*) AS n, grouping__id FROM orders GROUP BY customer, amount WITH CUBE HAVING grouping__id > 0;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6);
--- change
INSERT INTO orders VALUES (12, 2, 5);
DELETE FROM orders WHERE id = 11;
--- delta
-- +1 | 1 | NULL | 1 | 1
-- -1 | 1 | NULL | 2 | 1
-- +1 | 2 | NULL | 1 | 1
-- -1 | NULL | 5 | 1 | 2
-- +1 | NULL | 5 | 2 | 2
-- -1 | NULL | 6 | 1 | 2

--- case: the number of the only grouping set, which is empty
--- covers: Q9 GROUPING SETS of nothing
--- spark: DuckDB's GROUPING_ID needs arguments
SELECT COUNT(*) AS n FROM orders GROUP BY GROUPING SETS (()) HAVING GROUPING_ID() = 0;
--- before
INSERT INTO orders VALUES (1, 1, 5);
--- change
INSERT INTO orders VALUES (2, 1, 6);
--- delta
-- -1 | 1
-- +1 | 2

--- case: the number of an empty grouping set that is listed twice
--- covers: Q9 GROUPING SETS of nothing
--- spark: DuckDB's GROUPING_ID needs arguments
SELECT COUNT(*) AS n, GROUPING_ID() AS g FROM orders GROUP BY GROUPING SETS ((), ());
--- before
INSERT INTO orders VALUES (1, 1, 5);
--- change
INSERT INTO orders VALUES (2, 1, 6);
--- delta
-- -2 | 1 | 0
-- +2 | 2 | 0

--- case: places among the groups of ROLLUP, of which some tie
--- covers: Q9 ROLLUP
--- spark: DuckDB has no GROUPING_ID without keys
SELECT customer, ROW_NUMBER() OVER (ORDER BY COUNT(*)) AS place FROM orders GROUP BY ROLLUP (customer);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 2, 6);
--- change
INSERT INTO orders VALUES (3, 1, 7);
--- delta
-- -1 | 1 | 1
-- -1 | 2 | 2
-- +1 | 1 | 2
-- +1 | 2 | 1

--- case: a group of NULL and the whole, which tie
--- covers: Q9 GROUPING SETS
--- spark: DuckDB has no GROUPING_ID without keys
SELECT GROUPING(customer) AS g, ROW_NUMBER() OVER (ORDER BY COUNT(*)) AS place FROM orders GROUP BY GROUPING SETS ((customer), ());
--- before
INSERT INTO orders VALUES (1, NULL, 5);
--- change
INSERT INTO orders VALUES (2, 3, 5);
--- delta
-- -1 | 1 | 2
-- +1 | 0 | 2
-- +1 | 1 | 3

--- case: GROUP BY ALL beside places by a number of rows, in a window with a name
--- covers: Q4 GROUP BY ALL
--- spark: DuckDB takes the window for a key
SELECT customer, ROW_NUMBER() OVER w AS place FROM orders GROUP BY ALL WINDOW w AS (ORDER BY COUNT(*), customer);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 2, 6);
--- change
INSERT INTO orders VALUES (3, 1, 7);
--- delta
-- -1 | 1 | 1
-- -1 | 2 | 2
-- +1 | 1 | 2
-- +1 | 2 | 1
