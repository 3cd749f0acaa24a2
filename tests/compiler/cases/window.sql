--- case: a row that comes renumbers the rows behind it
--- covers: Q19 ROW_NUMBER with PARTITION BY
SELECT id, row_number() OVER (PARTITION BY customer ORDER BY amount) AS place FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 7), (12, 2, 5);
--- change
INSERT INTO orders VALUES (13, 1, 6);
--- delta
-- -1 | 11 | 2
-- +1 | 11 | 3
-- +1 | 13 | 2

--- case: a row moves to another partition, and both are numbered again
--- covers: Q19 ROW_NUMBER with PARTITION BY
SELECT id, customer, row_number() OVER (PARTITION BY customer ORDER BY id) AS place FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 7), (12, 2, 5), (13, 3, 5);
--- change
UPDATE orders SET customer = 2 WHERE id = 10;
--- delta
-- -1 | 10 | 1 | 1
-- +1 | 10 | 2 | 1
-- +1 | 11 | 1 | 1
-- -1 | 11 | 1 | 2
-- -1 | 12 | 2 | 1
-- +1 | 12 | 2 | 2

--- case: a partition is emptied and filled again in one window
--- covers: Q19 an aggregate over a partition
SELECT id, SUM(amount) OVER (PARTITION BY customer) AS total, COUNT(*) OVER (PARTITION BY customer) AS n FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 7), (12, 2, 5);
--- change
DELETE FROM orders WHERE customer = 1;
INSERT INTO orders VALUES (14, 1, 9);
--- delta
-- -1 | 10 | 12 | 2
-- -1 | 11 | 12 | 2
-- +1 | 14 | 9 | 1

--- case: NULL is a partition
--- covers: Q19 an aggregate over a partition; Q28 a NULL partition
SELECT id, MAX(amount) OVER (PARTITION BY customer) AS most FROM orders;
--- before
INSERT INTO orders VALUES (10, NULL, 5), (11, NULL, 7), (12, 1, 9);
--- change
DELETE FROM orders WHERE id = 11;
--- delta
-- +1 | 10 | 5
-- -1 | 10 | 7
-- -1 | 11 | 7

--- case: copies of a row are numbered apart
--- covers: Q19 ROW_NUMBER with PARTITION BY; Q26 copies in a partition
SELECT customer, row_number() OVER (PARTITION BY customer ORDER BY amount) AS place FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5), (10, 1, 5), (10, 1, 5);
--- change
DELETE FROM orders;
INSERT INTO orders VALUES (10, 1, 5), (10, 1, 5);
--- delta
-- -1 | 1 | 3

--- case: ties share a rank until one of them moves
--- covers: Q19 RANK, DENSE_RANK, PERCENT_RANK and CUME_DIST
SELECT id, rank() OVER (ORDER BY amount) AS rank, dense_rank() OVER (ORDER BY amount) AS dense, percent_rank() OVER (ORDER BY amount) AS share, cume_dist() OVER (ORDER BY amount) AS below FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5), (12, 1, 7);
--- change
UPDATE orders SET amount = 6 WHERE id = 11;
--- delta
-- +1 | 10 | 1 | 1 | 0 | 0.3333333333
-- -1 | 10 | 1 | 1 | 0 | 0.6666666667
-- -1 | 11 | 1 | 1 | 0 | 0.6666666667
-- +1 | 11 | 2 | 2 | 0.5 | 0.6666666667
-- -1 | 12 | 3 | 2 | 1 | 1
-- +1 | 12 | 3 | 3 | 1 | 1

--- case: the row between two others goes, and they are neighbours
--- covers: Q19 LAG and LEAD
SELECT id, lag(id) OVER (PARTITION BY customer ORDER BY id) AS behind, lead(id, 1, 0) OVER (PARTITION BY customer ORDER BY id) AS ahead FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5), (12, 1, 7);
--- change
DELETE FROM orders WHERE id = 11;
--- delta
-- -1 | 10 | NULL | 11
-- +1 | 10 | NULL | 12
-- -1 | 11 | 10 | 12
-- +1 | 12 | 10 | 0
-- -1 | 12 | 11 | 0

--- case: a frame of ROWS
--- covers: Q19 a ROWS frame
SELECT id, SUM(amount) OVER (PARTITION BY customer ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS two, AVG(amount) OVER (PARTITION BY customer ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS three FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 4), (11, 1, 6), (12, 1, 8), (13, 1, 10);
--- change
DELETE FROM orders WHERE id = 11;
--- delta
-- -1 | 10 | 4 | 5
-- +1 | 10 | 4 | 6
-- -1 | 11 | 10 | 6
-- +1 | 12 | 12 | 7.333333333
-- -1 | 12 | 14 | 8

--- case: a frame of RANGE takes all peers along
--- covers: Q19 a RANGE frame
SELECT id, SUM(amount) OVER (ORDER BY customer) AS running FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 4), (11, 2, 6), (12, 3, 8);
--- change
INSERT INTO orders VALUES (13, 2, 1);
--- delta
-- -1 | 11 | 10
-- +1 | 11 | 11
-- -1 | 12 | 18
-- +1 | 12 | 19
-- +1 | 13 | 11

--- case: a frame of RANGE that counts by value
--- covers: Q19 a RANGE frame
SELECT id, COUNT(*) OVER (PARTITION BY customer ORDER BY amount RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS near FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 4), (11, 1, 5), (12, 1, 8);
--- change
UPDATE orders SET amount = 7 WHERE id = 11;
--- delta
-- +1 | 10 | 1
-- -1 | 10 | 2
-- -1 | 12 | 1
-- +1 | 12 | 2

--- case: a frame of RANGE whose bound is an interval of two units
--- covers: Q19 a RANGE frame
--- spark: DuckDB writes such an interval otherwise
SELECT id, COUNT(*) OVER (ORDER BY happened RANGE BETWEEN INTERVAL 2 DAYS 4 HOURS PRECEDING AND CURRENT ROW) AS near FROM visits;
--- before
INSERT INTO visits (id, happened) VALUES (1, TIMESTAMP '2026-01-01 00:00:00'), (2, TIMESTAMP '2026-01-03 05:00:00');
--- change
INSERT INTO visits (id, happened) VALUES (3, TIMESTAMP '2026-01-03 04:00:00');
--- delta
-- +1 | 3 | 2
-- -1 | 2 | 1
-- +1 | 2 | 2

--- case: the first, the last and the second value of a frame
--- covers: Q19 FIRST_VALUE, LAST_VALUE and NTH_VALUE
SELECT id, first_value(amount) OVER (PARTITION BY customer ORDER BY id) AS first, last_value(amount) OVER (PARTITION BY customer ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS last, nth_value(amount, 2) OVER (PARTITION BY customer ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS second FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 4), (11, 1, 5), (12, 1, 8);
--- change
DELETE FROM orders WHERE id = 10;
--- delta
-- -1 | 10 | 4 | 8 | 5
-- -1 | 11 | 4 | 8 | 5
-- +1 | 11 | 5 | 8 | 8
-- -1 | 12 | 4 | 8 | 5
-- +1 | 12 | 5 | 8 | 8

--- case: NTILE deals the rows out again
--- covers: Q19 NTILE
SELECT id, ntile(2) OVER (ORDER BY amount DESC) AS half FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 4), (11, 1, 5), (12, 1, 8);
--- change
INSERT INTO orders VALUES (13, 1, 9), (14, 1, 10);
--- delta
-- -1 | 11 | 1
-- +1 | 11 | 2
-- +1 | 13 | 1
-- +1 | 14 | 1

--- case: several windows with different partitions
--- covers: Q19 several partitionings
SELECT id, SUM(amount) OVER (PARTITION BY customer) AS theirs, rank() OVER (PARTITION BY amount ORDER BY id) AS place, COUNT(*) OVER () AS n FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5), (12, 2, 7);
--- change
UPDATE orders SET customer = 2 WHERE id = 10;
--- delta
-- +1 | 10 | 17 | 1 | 3
-- -1 | 10 | 5 | 1 | 3
-- -1 | 11 | 12 | 2 | 3
-- +1 | 11 | 17 | 2 | 3
-- -1 | 12 | 12 | 1 | 3
-- +1 | 12 | 17 | 1 | 3

--- case: a partition by an expression and one by a qualified column
--- covers: Q19 PARTITION BY an expression
SELECT o.id, SUM(o.amount) OVER (PARTITION BY o.amount % 2) AS parity, COUNT(*) OVER (PARTITION BY c.region) AS n FROM orders AS o JOIN customers AS c ON o.customer = c.id;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 7);
--- change
UPDATE customers SET region = 'north' WHERE id = 2;
UPDATE orders SET amount = 8 WHERE id = 11;
--- delta
-- -1 | 10 | 12 | 1
-- +1 | 10 | 5 | 2
-- -1 | 11 | 12 | 1
-- +1 | 11 | 8 | 2

--- case: a window by the name of another one
--- covers: Q19 WINDOW, and a name for a name
--- spark: to DuckDB, a window is no name of another
SELECT id, SUM(amount) OVER v AS total, row_number() OVER v AS place FROM orders WINDOW v AS w, w AS (PARTITION BY customer ORDER BY id);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 7), (12, 2, 5);
--- change
DELETE FROM orders WHERE id = 10;
--- delta
-- -1 | 10 | 5 | 1
-- -1 | 11 | 12 | 2
-- +1 | 11 | 7 | 1

--- case: a named window
--- covers: Q19 a named window
SELECT id, SUM(amount) OVER w AS total, row_number() OVER w AS place FROM orders WINDOW w AS (PARTITION BY customer ORDER BY id);
--- before
INSERT INTO orders VALUES (8, 2, 100), (10, 1, 5), (11, 1, 7);
--- change
INSERT INTO orders VALUES (9, 1, 1);
--- delta
-- -1 | 10 | 5 | 1
-- +1 | 10 | 6 | 2
-- -1 | 11 | 12 | 2
-- +1 | 11 | 13 | 3
-- +1 | 9 | 1 | 1

--- case: a window over the groups of an aggregate
--- covers: Q19 a window over an aggregate
SELECT customer, SUM(amount) AS total, rank() OVER (ORDER BY SUM(amount) DESC) AS place, SUM(SUM(amount)) OVER () AS everything FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 7), (12, 3, 1);
--- change
INSERT INTO orders VALUES (13, 1, 3);
DELETE FROM orders WHERE id = 12;
--- delta
-- -1 | 1 | 5 | 2 | 13
-- +1 | 1 | 8 | 1 | 15
-- -1 | 2 | 7 | 1 | 13
-- +1 | 2 | 7 | 2 | 15
-- -1 | 3 | 1 | 3 | 13

--- case: a window over the result of a window
--- covers: Q19 a window over a window
SELECT customer, MAX(place) OVER (PARTITION BY amount) AS most FROM (SELECT customer, amount, row_number() OVER (PARTITION BY customer ORDER BY id) AS place FROM orders) AS t;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5), (12, 2, 5);
--- change
DELETE FROM orders WHERE id = 10;
--- delta
-- +1 | 1 | 1
-- -2 | 1 | 2
-- +1 | 2 | 1
-- -1 | 2 | 2

--- case: a window inside an expression
--- covers: Q20 a window function inside an expression
SELECT id, CASE WHEN row_number() OVER (PARTITION BY customer ORDER BY amount DESC) = 1 THEN 'best' ELSE 'other' END AS mark, amount * 100 / SUM(amount) OVER (PARTITION BY customer) AS share FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 15);
--- change
UPDATE orders SET amount = 45 WHERE id = 10;
--- delta
-- +1 | 10 | best | 75
-- -1 | 10 | other | 25
-- -1 | 11 | best | 75
-- +1 | 11 | other | 25

--- case: QUALIFY keeps the newest of each customer
--- covers: Q20 QUALIFY
SELECT customer, id, amount FROM orders QUALIFY row_number() OVER (PARTITION BY customer ORDER BY id DESC) = 1;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 15), (12, 2, 1);
--- change
DELETE FROM orders WHERE id = 11;
INSERT INTO orders VALUES (13, 2, 3);
--- delta
-- +1 | 1 | 10 | 5
-- -1 | 1 | 11 | 15
-- -1 | 2 | 12 | 1
-- +1 | 2 | 13 | 3

--- case: QUALIFY by the name of a window
--- covers: Q20 QUALIFY
SELECT id, COUNT(*) OVER (PARTITION BY customer) AS n FROM orders QUALIFY n > 1;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 15);
--- change
INSERT INTO orders VALUES (12, 1, 5);
--- delta
-- +1 | 10 | 2
-- +1 | 12 | 2

--- case: the first row of each group by a subquery, as DISTINCT ON would choose it
--- covers: Q10 the first row of each group; Q19 ROW_NUMBER with PARTITION BY
SELECT customer, id FROM (SELECT customer, id, row_number() OVER (PARTITION BY customer ORDER BY amount DESC, id) AS place FROM orders) AS t WHERE place = 1;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5), (12, 2, 1);
--- change
DELETE FROM orders WHERE id = 10;
UPDATE orders SET customer = 1 WHERE id = 12;
--- delta
-- -1 | 1 | 10
-- +1 | 1 | 11
-- -1 | 2 | 12

--- case: a window above a join whose key changes while its partner goes
--- covers: Q3 a key changes and its partner goes; Q19 a window over a join
SELECT o.id, c.region, SUM(o.amount) OVER (PARTITION BY c.region) AS total FROM orders AS o JOIN customers AS c ON o.customer = c.id;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 7);
--- change
UPDATE orders SET customer = 2 WHERE id = 10;
DELETE FROM customers WHERE id = 1;
--- delta
-- -1 | 10 | north | 5
-- +1 | 10 | south | 12
-- +1 | 11 | south | 12
-- -1 | 11 | south | 7

--- case: a window computes over groups what the groups compute over rows
--- covers: Q20 windows over groups
SELECT customer, SUM(customer) AS own, SUM(customer) OVER () AS total, SUM(CASE WHEN COUNT(*) > 1 THEN customer END) OVER () AS several FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (1, 2, 0), (2, 2, 0), (3, 5, 0);
--- change
INSERT INTO orders VALUES (4, 5, 0);
--- delta
-- -1 | 2 | 4 | 7 | 2
-- +1 | 2 | 4 | 7 | 7
-- -1 | 5 | 5 | 7 | 2
-- +1 | 5 | 10 | 7 | 7

--- case: places by a collation
--- covers: Q28 windows in the order of a collation
--- spark: DuckDB has other collations
SELECT id, RANK() OVER (ORDER BY region COLLATE UTF8_LCASE) AS place, COUNT(*) OVER (ORDER BY region COLLATE UNICODE_CI) AS upto, LAG(id) OVER (ORDER BY region COLLATE UTF8_LCASE DESC) AS above FROM customers;
--- before
INSERT INTO customers VALUES (1, 'b'), (2, 'C'), (3, 'B'), (4, NULL);
--- change
INSERT INTO customers VALUES (5, 'c');
DELETE FROM customers WHERE id = 1;
--- delta
-- -1 | 1 | 2 | 3 | 2
-- -1 | 2 | 4 | 4 | NULL
-- +1 | 2 | 3 | 4 | NULL
-- -1 | 3 | 2 | 3 | 1
-- +1 | 3 | 2 | 2 | 5
-- +1 | 5 | 3 | 4 | 2

--- case: the number of values in a window, which no order changes
--- covers: Q20 a function of a list that takes no notice of its order
--- spark: DuckDB has no collect_set
SELECT id, size(collect_set(amount) OVER (PARTITION BY customer ORDER BY id)) AS n, array_sort(collect_list(amount) OVER (PARTITION BY customer ORDER BY id)) AS sorted FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 4), (11, 1, 3), (11, 1, 4);
--- change
DELETE FROM orders WHERE amount = 3;
--- delta
-- -2 | 11 | 2 | [3, 4, 4]
-- +1 | 11 | 1 | [4, 4]

--- case: the first and the last value of a frame between values
--- covers: Q19 FIRST_VALUE and LAST_VALUE over RANGE frames
SELECT id, FIRST_VALUE(amount) OVER (PARTITION BY customer ORDER BY id RANGE BETWEEN 5 PRECEDING AND CURRENT ROW) AS first,
  LAST_VALUE(amount) IGNORE NULLS OVER (PARTITION BY customer ORDER BY id DESC RANGE BETWEEN 5 PRECEDING AND 5 FOLLOWING) AS last FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 7), (14, 1, NULL), (20, 1, 3);
--- change
INSERT INTO orders VALUES (12, 1, 9), (14, 1, 2);
--- delta
-- +1 | 12 | 7 | 7
-- +1 | 14 | 7 | 7

--- case: the last value of a frame that ends at the current row, with all that tie
--- covers: Q19 FIRST_VALUE and LAST_VALUE over RANGE frames
SELECT id, LAST_VALUE(amount) OVER (PARTITION BY customer ORDER BY id) AS last, SUM(amount) OVER w AS total, LAST_VALUE(amount) OVER w AS same
  FROM orders WINDOW w AS (PARTITION BY customer ORDER BY id RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW);
--- before
INSERT INTO orders VALUES (10, 1, 7), (10, 1, 9), (14, 1, 4);
--- change
INSERT INTO orders VALUES (10, 1, 8), (14, 1, 5);
--- delta
-- -2 | 10 | 9 | 16 | 9
-- +3 | 10 | 9 | 24 | 9
-- -1 | 14 | 4 | 20 | 4
-- +2 | 14 | 5 | 33 | 5

--- case: the first value that is not NULL, and the first from the current row on, with all that tie
--- covers: Q19 FIRST_VALUE and LAST_VALUE over RANGE frames
SELECT id, FIRST_VALUE(amount) IGNORE NULLS OVER (ORDER BY id) AS known, FIRST_VALUE(amount) OVER (ORDER BY id DESC RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS own FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, NULL), (10, 1, 9);
--- change
INSERT INTO orders VALUES (10, 1, 8);
--- delta
-- -2 | 10 | 9 | 9
-- +3 | 10 | 8 | 9

--- case: frames whose words are in lower case
--- covers: Q19 FIRST_VALUE and LAST_VALUE over RANGE frames
select id, amount, sum(amount) over (order by id rows between unbounded preceding and current row) as total,
  last_value(amount) over (order by id rows unbounded preceding) as own, last_value(amount) over (order by id range unbounded preceding) as last from orders;
--- before
INSERT INTO orders VALUES (10, 1, 9), (10, 1, 7);
--- change
INSERT INTO orders VALUES (10, 1, 8);
--- delta
-- -1 | 10 | 9 | 16 | 9 | 9
-- +1 | 10 | 8 | 15 | 8 | 9
-- +1 | 10 | 9 | 24 | 9 | 9

--- case: ranks over the frame of a sum
--- covers: Q19 RANK
SELECT id, amount, RANK() OVER w AS place, DENSE_RANK() OVER w AS dense, SUM(amount) OVER w AS total FROM orders WINDOW w AS (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW);
--- before
INSERT INTO orders VALUES (10, 1, 9), (10, 1, 7);
--- change
INSERT INTO orders VALUES (11, 1, 8);
--- delta
-- +1 | 11 | 8 | 3 | 2 | 24

--- case: a row of a frame of values, with all that tie
--- covers: Q19 NTH_VALUE over RANGE frames
--- spark: DuckDB has no GET
SELECT id, NTH_VALUE(amount, 2) OVER w AS second, RANK() OVER w AS place FROM orders WINDOW w AS (PARTITION BY customer ORDER BY id);
--- before
INSERT INTO orders VALUES (10, 1, 7), (14, 1, 4);
--- change
INSERT INTO orders VALUES (10, 1, 8);
--- delta
-- -1 | 10 | NULL | 1
-- +2 | 10 | 8 | 1
-- -1 | 14 | 4 | 2
-- +1 | 14 | 8 | 3

--- case: the first value of a frame between values with NULLs on the other end
--- covers: Q19 FIRST_VALUE and LAST_VALUE over RANGE frames
SELECT id, FIRST_VALUE(amount) OVER (ORDER BY customer NULLS LAST RANGE BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING) AS a,
  FIRST_VALUE(amount) OVER (ORDER BY customer DESC NULLS FIRST RANGE BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING) AS b FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 7), (14, 3, 4);
--- change
INSERT INTO orders VALUES (20, NULL, 8);
--- delta
-- -1 | 10 | 7 | 4
-- +1 | 10 | 7 | 8
-- -1 | 14 | 7 | 4
-- +1 | 14 | 7 | 8
-- +1 | 20 | 7 | 8
