--- case: lists of a group, sorted
--- covers: Q7 COLLECT_LIST, ARRAY_AGG and COLLECT_SET
SELECT customer, collect_list(amount) AS amounts, sort_array(collect_set(amount)) AS kinds, size(array_agg(amount)) AS n FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 7), (11, 1, 5), (12, 2, 5);
--- change
INSERT INTO orders VALUES (13, 1, 5), (14, 1, NULL);
DELETE FROM orders WHERE id = 10;
--- delta
-- +1 | 1 | [5, 5] | [5] | 2
-- -1 | 1 | [5, 7] | [5, 7] | 2

--- case: strings of a group, joined
--- covers: Q7 LISTAGG and STRING_AGG; Q8 WITHIN GROUP
SELECT id, listagg(region, ',') AS plain, string_agg(region, '-') WITHIN GROUP (ORDER BY region DESC) AS back FROM customers GROUP BY id;
--- before
INSERT INTO customers VALUES (1, 'north'), (1, 'west'), (2, 'south');
--- change
INSERT INTO customers VALUES (1, 'south'), (1, NULL);
DELETE FROM customers WHERE region = 'west';
--- delta
-- +1 | 1 | north,south | south-north
-- -1 | 1 | north,west | west-north

--- case: all, any and some of a group
--- covers: Q7 BOOL_AND and BOOL_OR
SELECT product, bool_and(paid) AS all_paid, bool_or(paid) AS any_paid FROM sales GROUP BY product;
--- before
INSERT INTO sales (product, paid) VALUES ('tea', true), ('tea', false), ('milk', NULL);
--- change
DELETE FROM sales WHERE NOT paid;
INSERT INTO sales (product, paid) VALUES ('milk', false);
--- delta
-- +1 | milk | False | False
-- -1 | milk | NULL | NULL
-- -1 | tea | False | True
-- +1 | tea | True | True

--- case: bits of a group
--- covers: Q7 BIT_AND, BIT_OR and BIT_XOR
SELECT customer, bit_and(amount) AS a, bit_or(amount) AS o, bit_xor(amount) AS x FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 6), (11, 1, 3), (12, 2, 1);
--- change
DELETE FROM orders WHERE id = 11;
INSERT INTO orders VALUES (13, 2, 5);
--- delta
-- -1 | 1 | 2 | 7 | 5
-- +1 | 1 | 6 | 6 | 6
-- -1 | 2 | 1 | 1 | 1
-- +1 | 2 | 1 | 5 | 4

--- case: deviations and variances
--- covers: Q7 STDDEV and VARIANCE
SELECT customer, stddev(amount) AS s, stddev_pop(amount) AS sp, stddev_samp(amount) AS ss, var_pop(amount) AS vp, var_samp(amount) AS vs, variance(amount) AS v FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 2), (11, 1, 4), (12, 2, 1);
--- change
INSERT INTO orders VALUES (13, 1, 6);
UPDATE orders SET amount = NULL WHERE id = 12;
--- delta
-- -1 | 1 | 1.414213562 | 1 | 1.414213562 | 1 | 2 | 2
-- +1 | 1 | 2 | 1.632993162 | 2 | 2.666666667 | 4 | 4
-- -1 | 2 | NULL | 0 | NULL | 0 | NULL | NULL
-- +1 | 2 | NULL | NULL | NULL | NULL | NULL | NULL

--- case: covariances, correlation and regression
--- covers: Q7 CORR, COVAR and the nine REGR
--- spark: DuckDB and Spark differ on what a line through one point is; corr of equal values divides by zero there
SELECT customer, corr(amount, id) AS c, covar_pop(amount, id) AS cp, covar_samp(amount, id) AS cs, regr_avgx(amount, id) AS ax, regr_avgy(amount, id) AS ay, regr_count(amount, id) AS n, regr_intercept(amount, id) AS i, regr_r2(amount, id) AS r2, regr_slope(amount, id) AS slope, regr_sxx(amount, id) AS sxx, regr_sxy(amount, id) AS sxy, regr_syy(amount, id) AS syy FROM orders WHERE id > 900 GROUP BY customer;
--- before
INSERT INTO orders VALUES (901, 1, 2), (902, 1, 4);
--- change
INSERT INTO orders VALUES (903, 1, 6);
--- delta
-- -1 | 1 | 1 | 0.5 | 1 | 901.5 | 3 | 2 | -1800 | 1 | 2 | 0.5 | 1 | 2
-- +1 | 1 | 1 | 1.333333333 | 2 | 902 | 4 | 3 | -1800 | 1 | 2 | 2 | 4 | 8

--- case: skewness and kurtosis
--- covers: Q7 SKEWNESS and KURTOSIS
--- spark: DuckDB corrects both for the size of the sample
SELECT customer, skewness(amount) AS s, kurtosis(amount) AS k FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (1, 1, 1), (2, 1, 3), (3, 1, 99);
--- change
DELETE FROM orders WHERE id = 3;
--- delta
-- -1 | 1 | 0.706092685 | -1.5
-- +1 | 1 | 0 | -2

--- case: medians and percentiles
--- covers: Q7 MEDIAN, PERCENTILE, PERCENTILE_CONT and PERCENTILE_DISC; Q8 WITHIN GROUP
SELECT customer, median(amount) AS m, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) AS cont, percentile_disc(0.5) WITHIN GROUP (ORDER BY amount) AS disc FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 2), (11, 1, 4), (12, 2, 1);
--- change
INSERT INTO orders VALUES (13, 1, 9);
DELETE FROM orders WHERE id = 12;
--- delta
-- -1 | 1 | 3 | 3 | 2
-- +1 | 1 | 4 | 4 | 4
-- -1 | 2 | 1 | 1 | 1

--- case: the value of the greatest and of the least
--- covers: Q7 MAX_BY and MIN_BY
SELECT customer, max_by(id, amount) AS top, min_by(id, amount) AS low FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 2), (11, 1, 4), (12, 1, 7);
--- change
DELETE FROM orders WHERE id = 12;
UPDATE orders SET amount = 9 WHERE id = 10;
--- delta
-- +1 | 1 | 10 | 11
-- -1 | 1 | 12 | 10

--- case: NULL is neither the greatest nor the least
--- covers: Q7 MAX_BY and MIN_BY
SELECT customer, max_by(id, amount) AS top, min_by(id, amount) AS low FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 2), (11, 1, 4);
--- change
INSERT INTO orders VALUES (12, 1, NULL), (13, 2, NULL);
--- delta
-- +1 | 2 | NULL | NULL

--- case: the most frequent value
--- covers: Q7 MODE
--- spark: DuckDB does not let MODE choose the least of equals
SELECT customer, mode(amount) AS usual FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 2), (11, 1, 2), (12, 1, 7);
--- change
INSERT INTO orders VALUES (13, 1, 7), (14, 1, 7);
--- delta
-- -1 | 1 | 2
-- +1 | 1 | 7

--- case: any value, the first and the last
--- covers: Q7 ANY_VALUE, FIRST and LAST
SELECT customer, any_value(amount) AS one, first(amount) AS first, last(amount) AS last FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 2), (11, 1, 4);
--- change
DELETE FROM orders WHERE id = 10;
INSERT INTO orders VALUES (12, 1, 9);
--- delta
-- -1 | 1 | 2 | 2 | 4
-- +1 | 1 | 4 | 4 | 9

--- case: the first and the last that are not NULL
--- covers: Q7 ANY_VALUE, FIRST and LAST
SELECT customer, first(amount) IGNORE NULLS AS first, last_value(amount) IGNORE NULLS AS last FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, NULL), (11, 1, 4);
--- change
INSERT INTO orders VALUES (12, 1, 2), (13, 1, NULL);
--- delta
-- +1 | 1 | 2 | 4
-- -1 | 1 | 4 | 4

--- case: counting what is true
--- covers: Q7 COUNT_IF, SOME and EVERY
--- spark: in DuckDB, COUNT_IF of nothing but NULLs is NULL
SELECT customer, count_if(amount > 3) AS large, some(amount > 3) AS any_large, every(amount > 3) AS all_large, COUNT(*) AS n FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 2), (11, 1, 4);
--- change
UPDATE orders SET amount = 5;
--- delta
-- -1 | 1 | 1 | True | False | 2
-- +1 | 1 | 2 | True | True | 2

--- case: counting what is true and never NULL
--- covers: Q7 COUNT_IF, SOME and EVERY
SELECT customer, count_if(amount IS NOT NULL AND amount > 3) AS large FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 2), (11, 1, 4);
--- change
INSERT INTO orders VALUES (12, 1, 9), (13, 1, NULL), (14, 2, 1);
--- delta
-- -1 | 1 | 1
-- +1 | 1 | 2
-- +1 | 2 | 0

--- case: about how many distinct values, and about which value in the middle
--- covers: Q7 APPROX_COUNT_DISTINCT and PERCENTILE_APPROX
--- spark: DuckDB's estimates are other estimates
SELECT customer, approx_count_distinct(amount) AS kinds, percentile_approx(amount, 0.5) AS middle, approx_percentile(amount, 0.5) AS again FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 2), (11, 1, 4);
--- change
INSERT INTO orders VALUES (12, 1, 9), (13, 1, 9);
--- delta
-- -1 | 1 | 2 | 2 | 2
-- +1 | 1 | 3 | 4 | 4

--- case: sums and averages that do not fail
--- covers: Q7 TRY_SUM and TRY_AVG
--- spark: DuckDB has no TRY_SUM
SELECT customer, try_sum(amount) AS s, try_avg(amount) AS a, mean(amount) AS m FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 2), (11, 1, 4);
--- change
DELETE FROM orders WHERE id = 11;
--- delta
-- -1 | 1 | 6 | 3 | 3
-- +1 | 1 | 2 | 2 | 2

--- case: a count of several values
--- covers: Q5 COUNT of several values
--- spark: DuckDB counts one value
SELECT customer, COUNT(amount, id) AS n FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 2), (11, 1, NULL);
--- change
INSERT INTO orders VALUES (12, 1, 2), (NULL, 1, 2);
--- delta
-- -1 | 1 | 1
-- +1 | 1 | 2

--- case: JSON of a group
--- covers: Q7 JSON of a group
--- spark: DuckDB writes JSON with other spaces
SELECT customer, to_json(collect_list(struct(id, amount))) AS rows_ FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 2), (11, 2, 4);
--- change
INSERT INTO orders VALUES (9, 1, 5);
--- delta
-- -1 | 1 | [{"id":10,"amount":2}]
-- +1 | 1 | [{"id":9,"amount":5},{"id":10,"amount":2}]

--- case: FILTER on every kind of aggregate
--- covers: Q8 FILTER
SELECT customer, collect_list(amount) FILTER (WHERE amount > 3) AS large, bool_or(amount > 5) FILTER (WHERE id > 10) AS some_large, max_by(id, amount) FILTER (WHERE amount < 9) AS top FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 2), (11, 1, 4);
--- change
INSERT INTO orders VALUES (12, 1, 9), (13, 1, 6);
--- delta
-- +1 | 1 | [4, 6, 9] | True | 13
-- -1 | 1 | [4] | False | 11

--- case: DISTINCT inside an aggregate that collects
--- covers: Q8 DISTINCT inside an aggregate
SELECT customer, collect_list(DISTINCT amount) AS kinds, SUM(DISTINCT amount) AS total, COUNT(DISTINCT amount) AS n FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 2), (11, 1, 2), (12, 1, 4);
--- change
DELETE FROM orders WHERE id = 10;
DELETE FROM orders WHERE id = 12;
--- delta
-- -1 | 1 | [2, 4] | 6 | 2
-- +1 | 1 | [2] | 2 | 1

--- case: an aggregate of moments without groups, over rows that all go
--- covers: Q7 an aggregate over no rows
SELECT stddev_pop(amount) AS s, max_by(id, amount) AS last, bool_and(amount > 1) AS all_large FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 2), (11, 1, 4);
--- change
DELETE FROM orders;
--- delta
-- -1 | 1 | 11 | True
-- +1 | NULL | NULL | NULL

--- case: a percentile above a join whose partner goes
--- covers: Q7 an aggregate over a join; Q3 a key changes and its partner goes
SELECT c.region, median(o.amount) AS middle FROM orders AS o JOIN customers AS c ON o.customer = c.id GROUP BY c.region;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (10, 1, 2), (11, 1, 4), (12, 2, 6);
--- change
UPDATE orders SET customer = 2 WHERE id = 10;
DELETE FROM customers WHERE id = 1;
--- delta
-- -1 | north | 3
-- +1 | south | 4
-- -1 | south | 6

--- case: a text of a group in an order by a collation
--- covers: Q28 a group's order by a collation
--- spark: DuckDB has other collations
SELECT id % 2 AS k, listagg(region, ',') WITHIN GROUP (ORDER BY region COLLATE UTF8_LCASE DESC) AS all_of_them FROM customers GROUP BY id % 2;
--- before
INSERT INTO customers VALUES (1, 'b'), (2, 'C'), (3, 'B'), (4, NULL);
--- change
INSERT INTO customers VALUES (5, 'c');
UPDATE customers SET region = 'd' WHERE id = 4;
--- delta
-- -1 | 0 | C
-- +1 | 0 | d,C
-- -1 | 1 | B,b
-- +1 | 1 | c,B,b

--- case: columns are added before the clauses of a query that begins with FROM
--- covers: Q8 WITHIN GROUP
FROM customers SELECT LISTAGG(region, ',') WITHIN GROUP (ORDER BY region) AS l GROUP BY id % 2;
--- before
INSERT INTO customers VALUES (1, 'x'), (2, 'y'), (3, 'z');
--- change
INSERT INTO customers VALUES (5, 'a');
--- delta
-- +1 | a,x,z
-- -1 | x,z

--- case: sketches of theta and of tuples
--- covers: Q7 THETA_SKETCH_AGG and TUPLE_SKETCH_AGG
--- spark: DuckDB has no such sketches
SELECT customer, theta_sketch_estimate(theta_sketch_agg(amount)) AS n, tuple_sketch_estimate_integer(tuple_sketch_agg_integer(id, amount, 12, 'max')) AS m
FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
--- change
INSERT INTO orders VALUES (3, 1, 8), (9, 2, 9), (9, 1, 8);
DELETE FROM orders WHERE id = 2;
--- delta
-- -1 | 1 | 1 | 1.0
-- +1 | 1 | 2 | 3.0
-- +1 | 2 | 1 | 1.0
-- -1 | 3 | 1 | 1.0
