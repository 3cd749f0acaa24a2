--- case: rows leave as time passes
--- covers: Q25 rows of the last day
SELECT id, happened FROM visits WHERE happened > current_timestamp() - INTERVAL 1 DAY;
--- before
INSERT INTO visits (id, happened) VALUES (1, TIMESTAMP '2013-01-31 10:00:00'), (2, TIMESTAMP '2013-01-31 13:00:00'), (3, NULL);
--- change
--- delta
-- -1 | 1 | 2013-01-31 10:00:00+00:00

--- case: rows enter as time passes
--- covers: Q25 rows that are due
SELECT id FROM visits WHERE happened <= now();
--- before
INSERT INTO visits (id, happened) VALUES (1, TIMESTAMP '2013-01-31 10:00:00'), (2, TIMESTAMP '2013-01-31 13:00:00'), (3, TIMESTAMP '2013-02-02 13:00:00');
--- change
DELETE FROM visits WHERE id = 1;
INSERT INTO visits (id, happened) VALUES (4, TIMESTAMP '2013-02-01 13:00:00'), (5, TIMESTAMP '2013-02-01 11:00:00');
--- delta
-- -1 | 1
-- +1 | 2
-- +1 | 5

--- case: a row leaves by time and is deleted in one window
--- covers: Q25 rows of the last day
SELECT id FROM visits WHERE happened > current_timestamp() - INTERVAL 1 DAY AND id < 9;
--- before
INSERT INTO visits (id, happened) VALUES (1, TIMESTAMP '2013-01-31 10:00:00'), (2, TIMESTAMP '2013-01-31 10:00:00');
--- change
DELETE FROM visits WHERE id = 1;
INSERT INTO visits (id, happened) VALUES (3, TIMESTAMP '2013-01-31 10:00:00');
--- delta
-- -1 | 1
-- -1 | 2

--- case: time makes a condition unknown, and the row leaves
--- covers: Q25 rows that are not yet due; Q28 a condition that becomes NULL
SELECT id, happened FROM visits WHERE happened > now() OR id = 1;
--- before
INSERT INTO visits (id, happened) VALUES (NULL, TIMESTAMP '2013-01-31 13:00:00'), (1, TIMESTAMP '2013-01-31 13:00:00'), (2, TIMESTAMP '2013-01-31 13:00:00');
--- change
--- delta
-- -1 | 2 | 2013-01-31 13:00:00+00:00
-- -1 | NULL | 2013-01-31 13:00:00+00:00

--- case: counts of the last day
--- covers: Q25 groups of the last day
SELECT id, COUNT(*) AS n, MAX(happened) AS last FROM visits WHERE happened > now() - INTERVAL 1 DAY GROUP BY id;
--- before
INSERT INTO visits (id, happened) VALUES (1, TIMESTAMP '2013-01-31 10:00:00'), (1, TIMESTAMP '2013-01-31 13:00:00'), (2, TIMESTAMP '2013-01-31 10:00:00');
--- change
INSERT INTO visits (id, happened) VALUES (2, TIMESTAMP '2013-02-01 10:00:00');
--- delta
-- +1 | 1 | 1 | 2013-01-31 13:00:00+00:00
-- -1 | 1 | 2 | 2013-01-31 13:00:00+00:00
-- -1 | 2 | 1 | 2013-01-31 10:00:00+00:00
-- +1 | 2 | 1 | 2013-02-01 10:00:00+00:00

--- case: days since, for every row
--- covers: Q24 current_date is the day of the refresh
SELECT product, datediff(current_date, sold) AS days FROM sales;
--- before
INSERT INTO sales (product, sold) VALUES ('tea', '2013-01-30'), ('milk', NULL);
--- change
INSERT INTO sales (product, sold) VALUES ('tea', '2013-01-31');
--- delta
-- +1 | tea | 2

--- case: a column that bears the name of the time
--- covers: Q24 current_date is the day of the refresh
SELECT product, sold AS `current_date` FROM sales;
--- before
INSERT INTO sales (product, sold) VALUES ('tea', '2013-01-30');
--- change
INSERT INTO sales (product, sold) VALUES ('milk', '2013-01-31');
--- delta
-- +1 | milk | 2013-01-31

--- case: a join with what is due
--- covers: Q25 rows that are due
SELECT c.region, v.id FROM visits AS v JOIN customers AS c ON c.id = v.id WHERE v.happened <= current_timestamp();
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO visits (id, happened) VALUES (1, TIMESTAMP '2013-01-31 13:00:00'), (2, TIMESTAMP '2013-01-31 13:00:00');
--- change
DELETE FROM customers WHERE id = 1;
--- delta
-- +1 | south | 2

--- case: time lets a row in that a subquery kept out
--- covers: Q25 beside a subquery, under OR
SELECT product FROM sales WHERE price NOT IN (SELECT amount FROM orders WHERE amount IS NOT NULL) OR sold < CURRENT_TIMESTAMP() - INTERVAL 1 DAY;
--- before
INSERT INTO sales (product, price, sold) VALUES ('a', 5, DATE '2013-01-31'), ('b', 5, DATE '2013-02-01');
INSERT INTO orders VALUES (1, 1, 5);
--- change
INSERT INTO orders VALUES (2, 1, 7);
--- delta
-- +1 | a

--- case: a subquery that asks for the time and for the row around it
--- covers: Q25 in a correlated subquery
SELECT o.id, (SELECT COUNT(*) FROM sales AS s WHERE length(s.product) = o.amount AND s.sold > CURRENT_TIMESTAMP() - o.customer * INTERVAL 1 DAY) AS recent FROM orders AS o WHERE EXISTS (SELECT 1 FROM sales AS s WHERE length(s.product) >= o.amount AND s.sold < CURRENT_TIMESTAMP());
--- before
INSERT INTO sales (product, sold) VALUES ('a', DATE '2013-01-31'), ('b', DATE '2013-01-30');
INSERT INTO orders VALUES (1, 1, 1), (2, 3, 1), (3, 1, 2);
--- change
INSERT INTO sales (product, sold) VALUES ('cc', DATE '2013-02-01'), ('dd', DATE '2013-02-02');
--- delta
-- -1 | 1 | 1
-- +1 | 1 | 0
-- +1 | 3 | 2

--- case: a left join whose partner time takes away
--- covers: Q25 in ON of an outer join
SELECT o.id, s.product FROM orders AS o LEFT JOIN sales AS s ON length(s.product) = o.amount AND s.sold > CURRENT_TIMESTAMP() - INTERVAL 1 DAY;
--- before
INSERT INTO sales (product, sold) VALUES ('a', DATE '2013-01-31');
INSERT INTO orders VALUES (1, 1, 1);
--- change
INSERT INTO orders VALUES (2, 1, 2);
INSERT INTO sales (product, sold) VALUES ('bb', DATE '2013-02-01');
--- delta
-- -1 | 1 | a
-- +1 | 1 | NULL
-- +1 | 2 | bb

--- case: a left join with all that is due, the same for every row
--- covers: Q25 in ON of an outer join
SELECT o.id, v.id AS due FROM orders AS o LEFT JOIN visits AS v ON v.happened <= now();
--- before
INSERT INTO orders VALUES (10, 1, 5);
INSERT INTO visits (id, happened) VALUES (2, TIMESTAMP '2013-01-31 13:00:00');
--- change
INSERT INTO orders VALUES (11, 1, 5);
--- delta
-- -1 | 10 | NULL
-- +1 | 10 | 2
-- +1 | 11 | 2

--- case: a full join on a time that each row sets for itself
--- covers: Q25 in ON of an outer join
SELECT o.id, s.product FROM orders AS o FULL JOIN sales AS s ON length(s.product) = o.amount AND s.sold > CURRENT_TIMESTAMP() - o.customer * INTERVAL 1 DAY;
--- before
INSERT INTO sales (product, sold) VALUES ('a', DATE '2013-01-31');
INSERT INTO orders VALUES (1, 1, 1), (2, 7, 1);
--- change
DELETE FROM orders WHERE id = 2;
--- delta
-- -1 | 1 | a
-- +1 | 1 | NULL
-- -1 | 2 | a
-- +1 | NULL | a

--- case: an anti join with what is due
--- covers: Q25 in ON of a semi join
SELECT o.id FROM orders AS o LEFT ANTI JOIN sales AS s ON length(s.product) = o.amount AND s.sold > CURRENT_TIMESTAMP() - o.customer * INTERVAL 1 DAY;
--- before
INSERT INTO sales (product, sold) VALUES ('a', DATE '2013-01-31');
INSERT INTO orders VALUES (1, 1, 1), (2, 7, 1);
--- change
INSERT INTO orders VALUES (3, 0, 1);
--- delta
-- +1 | 1
-- +1 | 3

--- case: rows joined to each row as time passes
--- covers: Q25 in ON of a lateral join; Q15 LEFT JOIN LATERAL with a condition on the time
SELECT o.id, l.sold FROM orders AS o LEFT JOIN LATERAL (SELECT s.sold FROM sales AS s WHERE length(s.product) = o.amount) AS l ON l.sold < CURRENT_TIMESTAMP();
--- before
INSERT INTO sales (product, sold) VALUES ('a', DATE '2013-02-01');
INSERT INTO orders VALUES (1, 1, 1);
--- change
INSERT INTO orders VALUES (2, 1, 2);
--- delta
-- -1 | 1 | NULL
-- +1 | 1 | 2013-02-01
-- +1 | 2 | NULL

--- case: elements of each row that match as time passes
--- covers: Q25 in ON of a lateral join; Q16 LATERAL explode(…) in FROM, LEFT JOIN on a condition
--- spark: DuckDB has no LEFT JOIN LATERAL on unnest with that condition
SELECT o.id, l.sold FROM orders AS o LEFT JOIN LATERAL explode(array(DATE '2013-02-01', DATE '2033-02-01')) AS l(sold) ON l.sold < CURRENT_TIMESTAMP();
--- before
INSERT INTO orders VALUES (1, 1, 1);
--- change
INSERT INTO orders VALUES (2, 1, 2);
--- delta
-- -1 | 1 | NULL
-- +1 | 1 | 2013-02-01
-- +1 | 2 | 2013-02-01

--- case: a column that bears the name of the time is a column
--- covers: Q25 names of the time
SELECT id, t.current_date, amount AS current_timestamp FROM (SELECT id, customer AS current_date, amount FROM orders) AS t;
--- before
INSERT INTO orders VALUES (1, 2, 3);
--- change
INSERT INTO orders VALUES (2, 3, 4);
--- delta
-- +1 | 2 | 3 | 4

--- case: the time beside an aggregate of a correlated subquery
--- covers: Q25 in a group of a correlated subquery
SELECT c.id, (SELECT COUNT(*) = 0 OR MAX(v.happened) < now() FROM visits AS v WHERE v.id = c.id) AS past FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'a'), (2, 'b');
INSERT INTO visits (id, happened) VALUES (1, TIMESTAMP '2013-01-31 13:00:00'), (2, TIMESTAMP '2013-02-02 13:00:00');
--- change
INSERT INTO visits (id, happened) VALUES (3, TIMESTAMP '2013-01-31 11:00:00');
INSERT INTO customers VALUES (3, 'a'), (4, 'a');
--- delta
-- +1 | 1 | True
-- +1 | 3 | True
-- +1 | 4 | True
-- -1 | 1 | False

--- case: the time in HAVING of a correlated subquery
--- covers: Q25 in a group of a correlated subquery
SELECT c.id FROM customers AS c WHERE EXISTS (SELECT v.id FROM visits AS v WHERE v.id = c.id GROUP BY v.id HAVING MAX(v.happened) < now());
--- before
INSERT INTO customers VALUES (1, 'a'), (2, 'b');
INSERT INTO visits (id, happened) VALUES (1, TIMESTAMP '2013-01-31 13:00:00'), (2, TIMESTAMP '2013-02-02 13:00:00');
--- change
INSERT INTO visits (id, happened) VALUES (3, TIMESTAMP '2013-01-31 11:00:00');
INSERT INTO customers VALUES (3, 'a'), (4, 'a');
--- delta
-- +1 | 1
-- +1 | 3

--- case: the time beside groups
--- covers: Q25 the time beside a key
SELECT customer, COUNT(*) AS n, CURRENT_DATE() AS day FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 2, 5);
--- delta
-- -1 | 1 | 1 | 2013-01-31
-- +1 | 1 | 1 | 2013-02-01
-- +1 | 2 | 1 | 2013-02-01
