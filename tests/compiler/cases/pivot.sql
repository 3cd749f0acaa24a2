--- case: a column for each value
--- covers: Q31 PIVOT
SELECT * FROM orders PIVOT (SUM(amount) FOR customer IN (1, 2 AS two));
--- before
INSERT INTO orders VALUES (7, 1, 5), (8, 1, 6), (8, 2, 9), (9, 3, 1);
--- change
INSERT INTO orders VALUES (7, 2, 4), (8, 1, 1), (6, 3, 1);
--- delta
-- -1 | 7 | 5 | NULL
-- -1 | 8 | 6 | 9
-- +1 | 6 | NULL | NULL
-- +1 | 7 | 5 | 4
-- +1 | 8 | 7 | 9

--- case: several aggregates for each value, of which COUNT is NULL without rows
--- covers: Q31 PIVOT by several aggregates
--- spark: DuckDB counts no rows as 0
SELECT * FROM (SELECT customer, amount, id % 2 AS odd FROM orders) AS t PIVOT (SUM(amount) AS s, COUNT(*) AS n FOR customer IN (1 AS a, 2)) AS p;
--- before
INSERT INTO orders VALUES (1, 1, 5), (3, 1, 6), (2, 2, 9);
--- change
INSERT INTO orders VALUES (5, 2, 4);
DELETE FROM orders WHERE id = 2;
--- delta
-- -1 | 0 | NULL | NULL | 9 | 1
-- -1 | 1 | 11 | 2 | NULL | NULL
-- +1 | 1 | 11 | 2 | 4 | 1

--- case: texts, whose aggregates null what they take from other rows
--- covers: Q31 PIVOT by several aggregates
SELECT p.id, p.north, p.x FROM customers AS c PIVOT (MAX(c.region) FOR region IN ('north', 'south' AS x)) AS p WHERE p.north IS NOT NULL;
--- before
INSERT INTO customers VALUES (1, 'south');
--- change
INSERT INTO customers VALUES (1, 'north');
--- delta
-- +1 | 1 | north | south

--- case: a list for each value
--- covers: Q31 PIVOT by several aggregates
--- spark: DuckDB orders the list otherwise
SELECT * FROM (SELECT customer, amount FROM orders) PIVOT (COLLECT_LIST(amount) AS l, COUNT(amount) AS n FOR customer IN (1 AS a, 2 AS b));
--- before
INSERT INTO orders VALUES (1, 1, 5);
--- change
INSERT INTO orders VALUES (5, 1, 4);
--- delta
-- -1 | [5] | 1 | [] | 0
-- +1 | [4, 5] | 2 | [] | 0

--- case: values of two columns, and of none
--- covers: Q31 PIVOT by several columns
--- spark: DuckDB has no PIVOT by pairs
SELECT * FROM orders PIVOT (SUM(amount) FOR (customer, id) IN ((1, 1) AS a, (2, NULL) AS b));
--- before
INSERT INTO orders VALUES (1, 1, 5);
--- change
INSERT INTO orders VALUES (NULL, 2, 4), (3, 2, 8);
--- delta
-- -1 | 5 | NULL
-- +1 | 5 | 4

--- case: a value is compared as the type of its column
--- covers: Q31 PIVOT
--- spark: DuckDB compares numbers
SELECT * FROM (SELECT note, account FROM ledger) PIVOT (SUM(account) FOR note IN (1, '01' AS b));
--- before
INSERT INTO ledger VALUES (5, 1.0, '1');
--- change
INSERT INTO ledger VALUES (7, 1.0, '01');
--- delta
-- -1 | 5 | NULL
-- +1 | 5 | 7

--- case: a row for each column
--- covers: Q31 UNPIVOT
SELECT * FROM orders UNPIVOT (x FOR y IN (customer, amount AS `the amount`));
--- before
INSERT INTO orders VALUES (1, 1, NULL);
--- change
UPDATE orders SET amount = 5;
--- delta
-- +1 | 1 | the amount | 5

--- case: a row for each column, with NULLs
--- covers: Q31 UNPIVOT INCLUDE NULLS
SELECT u.id, u.y, u.x, c.region FROM orders AS o UNPIVOT INCLUDE NULLS (x FOR y IN (customer, amount)) AS u JOIN customers AS c ON c.id = u.id;
--- before
INSERT INTO orders VALUES (1, 1, NULL);
--- change
INSERT INTO customers VALUES (1, 'north');
--- delta
-- +1 | 1 | amount | NULL | north
-- +1 | 1 | customer | 1 | north

--- case: a row for each pair of columns
--- covers: Q31 UNPIVOT of several columns
--- spark: DuckDB drops a pair of which one is NULL
SELECT y, a, b FROM orders UNPIVOT ((a, b) FOR y IN ((customer, amount) AS q, (amount, id)));
--- before
INSERT INTO orders VALUES (1, NULL, NULL);
--- change
INSERT INTO orders VALUES (2, 3, 4), (NULL, NULL, 7);
--- delta
-- +1 | amount_id | 4 | 2
-- +1 | amount_id | 7 | NULL
-- +1 | q | 3 | 4
-- +1 | q | NULL | 7

--- case: the rows of a join
--- covers: Q31 PIVOT of a join
SELECT customer, x, y FROM (SELECT customer, amount FROM orders) AS o JOIN customers AS c ON o.customer = c.id PIVOT (SUM(amount) FOR region IN ('x' AS x, 'y' AS y)) WHERE x > 1;
--- before
INSERT INTO orders VALUES (1, 1, 5), (1, 2, 6), (2, 1, 7);
INSERT INTO customers VALUES (1, 'x'), (2, 'x');
--- change
INSERT INTO customers VALUES (1, 'y');
DELETE FROM orders WHERE customer = 2;
--- delta
-- -1 | 1 | 12 | NULL
-- -1 | 2 | 6 | NULL
-- +1 | 1 | 12 | 12

--- case: the rows of a join, joined
--- covers: Q31 PIVOT of a join
SELECT p.x, r.name FROM orders AS o JOIN customers AS c USING (id) PIVOT (SUM(amount) FOR region IN ('x' AS x)) AS p JOIN regions AS r ON p.x = 5;
--- before
INSERT INTO orders VALUES (1, 1, 5);
INSERT INTO customers VALUES (1, 'x');
INSERT INTO regions VALUES ('r', 's');
--- change
UPDATE customers SET region = 'y';
--- delta
-- -1 | 5 | r

--- case: COUNT beside the most of numbers, which are NULL without rows
--- covers: Q31 PIVOT by several aggregates
--- spark: DuckDB counts no rows as 0
SELECT * FROM (SELECT customer, amount, id % 2 AS odd FROM orders) AS t PIVOT (COUNT(*) AS n, MAX(amount) AS m FOR customer IN (1 AS a, 2 AS b));
--- before
INSERT INTO orders VALUES (1, 1, 5), (3, 1, 6), (2, 2, 9);
--- change
INSERT INTO orders VALUES (5, 2, 4);
DELETE FROM orders WHERE id = 2;
--- delta
-- -1 | 0 | NULL | NULL | 1 | 9
-- -1 | 1 | 2 | 6 | NULL | NULL
-- +1 | 1 | 2 | 6 | 1 | 4

--- case: COUNT beside the most of texts, which is 0 without rows
--- covers: Q31 PIVOT by several aggregates
SELECT * FROM (SELECT id % 2 AS odd, region, id FROM customers) AS t PIVOT (COUNT(*) AS n, MAX(region) AS m FOR id IN (1 AS a, 2 AS b));
--- before
INSERT INTO customers VALUES (1, 'x');
--- change
INSERT INTO customers VALUES (2, 'y');
--- delta
-- +1 | 0 | 0 | NULL | 1 | y

--- case: a pivot right after a table pivots all that is joined before
--- covers: Q31 PIVOT of a table that is joined
--- spark: DuckDB pivots the last table alone
SELECT p.customer, x, y, two FROM (SELECT customer, amount FROM orders) AS a, (SELECT id FROM customers) AS b PIVOT (SUM(amount) FOR id IN (1 AS x, 2 AS y)) AS p JOIN (VALUES (2)) AS c(two);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 2, 6);
INSERT INTO customers VALUES (1, 'x');
--- change
INSERT INTO customers VALUES (2, 'y');
DELETE FROM orders WHERE id = 2;
--- delta
-- -1 | 1 | 5 | NULL | 2
-- +1 | 1 | 5 | 5 | 2
-- -1 | 2 | 6 | NULL | 2

--- case: an unpivot right after a table takes columns of all that is joined before
--- covers: Q31 UNPIVOT of a table that is joined
--- spark: DuckDB unpivots the last table alone
SELECT u.id, n, v FROM orders AS o JOIN (SELECT id AS k FROM customers) AS c UNPIVOT (v FOR n IN (amount, k)) AS u;
--- before
INSERT INTO orders VALUES (1, 1, 5);
INSERT INTO customers VALUES (1, 'x');
--- change
INSERT INTO customers VALUES (2, 'y');
UPDATE orders SET amount = 6;
--- delta
-- -1 | 1 | amount | 5
-- +2 | 1 | amount | 6
-- +1 | 1 | k | 2

--- case: pairs of values without names, mentioned by Spark's
--- covers: Q31 PIVOT by several columns
--- spark: DuckDB has no PIVOT by pairs
SELECT `{1, 1}` AS a, `{2, 3}` AS b, `{2, null}` AS c FROM orders PIVOT (SUM(amount) FOR (customer, id) IN ((1, 1), (2, 3), (2, NULL)));
--- before
INSERT INTO orders VALUES (1, 1, 5), (1, 1, 6), (3, 2, 5);
--- change
INSERT INTO orders VALUES (3, 2, 4), (NULL, 2, 9);
DELETE FROM orders WHERE amount = 6;
--- delta
-- -1 | 11 | 5 | NULL
-- +1 | 5 | 9 | 9

--- case: pairs of a number and a text
--- covers: Q31 PIVOT by several columns
--- spark: DuckDB has no PIVOT by pairs
SELECT `{1, north}_s` AS a, `{1, north}_max(amount)` AS m, south_s FROM (SELECT o.customer, o.amount, c.region FROM orders AS o JOIN customers AS c ON o.customer = c.id) PIVOT (SUM(amount) AS s, MAX(amount) FOR (customer, region) IN ((1, 'north'), (2, 'south') AS south));
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
--- change
INSERT INTO orders VALUES (3, 2, 4);
DELETE FROM orders WHERE amount = 6;
--- delta
-- -1 | 11 | 6 | NULL
-- +1 | 5 | 5 | 4

--- case: aggregates without names, mentioned by Spark's
--- covers: Q31 PIVOT by several aggregates
--- spark: DuckDB has other names
SELECT id, `1_sum(amount)` AS s, `1_count(1)` AS n, `2_count(DISTINCT amount)` AS d FROM orders PIVOT (SUM(amount), COUNT(*), COUNT(DISTINCT amount) FOR customer IN (1, (2)));
--- before
INSERT INTO orders VALUES (1, 1, 5), (1, 1, 6), (3, 2, 5);
--- change
INSERT INTO orders VALUES (3, 2, 4), (NULL, 2, 9);
DELETE FROM orders WHERE amount = 6;
--- delta
-- -1 | 1 | 11 | 2 | NULL
-- +1 | 1 | 5 | 1 | NULL
-- -1 | 3 | NULL | NULL | 1
-- +1 | 3 | NULL | NULL | 2
-- +1 | NULL | NULL | NULL | 1

--- case: dates without names are stored under theirs
--- covers: Q31 PIVOT
--- spark: DuckDB has other names
SELECT * FROM (SELECT product, price, sold FROM sales) PIVOT (SUM(price) FOR sold IN (DATE '2024-01-31', DATE '2024-02-01'));
--- before
INSERT INTO sales VALUES ('a', 1.5, 1.0, DATE '2024-01-31', TRUE);
--- change
INSERT INTO sales VALUES ('a', 2.5, 1.0, DATE '2024-02-01', TRUE), ('b', 1.0, NULL, NULL, TRUE);
--- delta
-- +1 | a | 1.50 | 2.50
-- -1 | a | 1.50 | NULL
-- +1 | b | NULL | NULL

--- case: columns in parentheses
--- covers: Q31 UNPIVOT
--- spark: DuckDB has no parentheses there
SELECT * FROM orders UNPIVOT ((v) FOR n IN ((customer), (amount) AS money));
--- before
INSERT INTO orders VALUES (1, 1, 5), (1, 1, 6), (3, 2, 5);
--- change
INSERT INTO orders VALUES (3, 2, 4), (NULL, 2, 9);
DELETE FROM orders WHERE amount = 6;
--- delta
-- -1 | 1 | customer | 1
-- -1 | 1 | money | 6
-- +1 | 3 | customer | 2
-- +1 | 3 | money | 4
-- +1 | NULL | customer | 2
-- +1 | NULL | money | 9

--- case: groups over columns that UNPIVOT makes
--- covers: Q31 UNPIVOT
SELECT n, SUM(v) AS total FROM orders UNPIVOT (v FOR n IN (customer, amount)) GROUP BY n;
--- before
INSERT INTO orders VALUES (1, 1, 5), (1, 1, 6), (3, 2, 5);
--- change
INSERT INTO orders VALUES (3, 2, 4), (NULL, 2, 9);
DELETE FROM orders WHERE amount = 6;
--- delta
-- -1 | amount | 16
-- +1 | amount | 23
-- -1 | customer | 4
-- +1 | customer | 7

--- case: groups over columns that PIVOT makes
--- covers: Q31 PIVOT
--- spark: DuckDB does not know the table after PIVOT
SELECT orders.id % 2 AS odd, SUM(`1`) AS one, AVG(`2`) AS two FROM orders PIVOT (SUM(amount) FOR customer IN (1, 2)) GROUP BY 1;
--- before
INSERT INTO orders VALUES (1, 1, 5), (1, 1, 6), (3, 2, 5);
--- change
INSERT INTO orders VALUES (3, 2, 4), (NULL, 2, 9);
DELETE FROM orders WHERE amount = 6;
--- delta
-- -1 | 1 | 11 | 5
-- +1 | 1 | 5 | 9
-- +1 | NULL | NULL | 9
