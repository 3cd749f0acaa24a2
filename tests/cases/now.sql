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
