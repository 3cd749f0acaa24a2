--- case: arithmetic on an updated row
--- covers: Q1 computed columns
SELECT id, amount + customer * 2 - 1 AS score, -amount AS negative FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
UPDATE orders SET amount = 6, customer = 2;
--- delta
-- -1 | 10 | 6 | -5
-- +1 | 10 | 9 | -6

--- case: rows that the projection makes equal are counted, not merged
--- covers: Q1 projection; Q26 copies that a projection makes
SELECT region FROM customers;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'north');
--- change
DELETE FROM customers WHERE id = 1;
INSERT INTO customers VALUES (3, 'south'), (4, 'south');
--- delta
-- -1 | north
-- +2 | south

--- case: an update that the projection does not show changes nothing
--- covers: Q1 projection
SELECT amount > 3 AS large FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
UPDATE orders SET amount = 6;
--- delta

--- case: CASE, COALESCE, NULLIF, GREATEST and LEAST
--- covers: Q1 CASE, COALESCE, NULLIF, GREATEST and LEAST
SELECT id, CASE WHEN amount > 5 THEN 'much' WHEN amount > 1 THEN 'some' ELSE 'little' END AS size, CASE customer WHEN 1 THEN 'first' END AS rank, COALESCE(amount, customer, 0) AS known, NULLIF(amount, 5) AS other, GREATEST(amount, customer) AS most, LEAST(amount, customer) AS least FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, NULL, NULL);
UPDATE orders SET amount = 6 WHERE id = 10;
--- delta
-- -1 | 10 | some | first | 5 | NULL | 5 | 1
-- +1 | 10 | much | first | 6 | 6 | 6 | 1
-- +1 | 11 | little | NULL | 0 | NULL | NULL | NULL

--- case: strings are cut, joined and measured
--- covers: Q1 functions of strings
SELECT id, UPPER(region) AS loud, CONCAT(region, '-', region) AS twice, SUBSTRING(region, 1, 2) AS short, LENGTH(region) AS long, region || '!' AS cried FROM customers;
--- before
INSERT INTO customers VALUES (1, 'north');
--- change
UPDATE customers SET region = 'south';
--- delta
-- -1 | 1 | NORTH | north-north | no | 5 | north!
-- +1 | 1 | SOUTH | south-south | so | 5 | south!

--- case: decimals stay exact
--- covers: Q1 functions of decimals
SELECT product, price * 3 AS triple, price + 0.05 AS dearer FROM sales;
--- before
INSERT INTO sales (product, price) VALUES ('tea', 1.10);
--- change
UPDATE sales SET price = 1.11;
--- delta
-- -1 | tea | 3.30 | 1.15
-- +1 | tea | 3.33 | 1.16

--- case: dates have parts
--- covers: Q1 functions of dates
SELECT product, YEAR(sold) AS year, MONTH(sold) AS month, EXTRACT(DAY FROM sold) AS day, CAST(sold AS STRING) AS text FROM sales;
--- before
INSERT INTO sales (product, sold) VALUES ('tea', '2013-01-31');
--- change
UPDATE sales SET sold = '2014-02-01';
--- delta
-- -1 | tea | 2013 | 1 | 31 | 2013-01-31
-- +1 | tea | 2014 | 2 | 1 | 2014-02-01

--- case: an alias that is also a column means the column
--- covers: Q1 an alias that is a column
SELECT amount AS id, id + 1 AS next FROM orders WHERE id > 1;
--- before
INSERT INTO orders VALUES (1, 1, 100);
--- change
INSERT INTO orders VALUES (2, 1, 200);
--- delta
-- +1 | 200 | 3

--- case: an alias serves the columns after it
--- covers: Q1 an alias that later columns use
SELECT id, amount * 2 AS twice, twice + 1 AS more FROM orders;
--- before
--- change
INSERT INTO orders VALUES (2, 1, 200);
--- delta
-- +1 | 2 | 400 | 401

--- case: constants are columns too
--- covers: Q1 a constant
SELECT 1 AS one, 'x' AS x, CAST(NULL AS STRING) AS nothing, id FROM orders;
--- before
--- change
INSERT INTO orders VALUES (2, 1, 200);
--- delta
-- +1 | 1 | x | NULL | 2

--- case: a query that reads no column counts rows
--- covers: Q1 a query that reads no column
SELECT 'row' AS what FROM orders;
--- before
INSERT INTO orders VALUES (1, 1, 1);
--- change
INSERT INTO orders VALUES (2, 1, 1), (3, 1, 1);
--- delta
-- +2 | row

--- case: columns that Spark names by themselves
--- covers: Q1 columns without a name of their own
SELECT CAST(o.amount AS BIGINT), (customer), -1, TRUE, 'new' FROM orders AS o;
--- before
INSERT INTO orders VALUES (1, 2, 5);
--- change
UPDATE orders SET amount = 6;
--- delta
-- -1 | 5 | 2 | -1 | True | new
-- +1 | 6 | 2 | -1 | True | new

--- case: a column of a subquery that its author did not name
--- covers: Q1 columns without a name of their own
--- spark: DuckDB gives it another name
SELECT amount + 1 AS more, `7` FROM (SELECT CAST(amount AS BIGINT), 7 FROM orders) AS t;
--- before
INSERT INTO orders VALUES (1, 2, 5);
--- change
INSERT INTO orders VALUES (2, 2, 6);
--- delta
-- +1 | 7 | 7

--- case: a key that is cast keeps its name
--- covers: Q1 columns without a name of their own
SELECT CAST(customer AS BIGINT), SUM(amount) AS total FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (1, 2, 5);
--- change
INSERT INTO orders VALUES (2, 2, 6);
--- delta
-- -1 | 2 | 5
-- +1 | 2 | 11

--- case: texts that may be no date, no address and no XML
--- covers: Q1 functions that read texts
--- spark: DuckDB has none of these functions
SELECT id, try_to_date(region, 'yyyyMMdd') AS d, try_parse_url(region, 'HOST') AS h, quote(region) AS q, is_valid_utf8(region) AS v,
  xpath_int(concat('<a>', id, '</a>'), 'a') AS x, make_timestamp(2024, 1, id, 0, 0, 0) AS t
FROM customers WHERE id BETWEEN 1 AND 28;
--- before
INSERT INTO customers VALUES (1, '20240131');
--- change
UPDATE customers SET region = 'https://example.com/x';
--- delta
-- -1 | 1 | 2024-01-31 | NULL | '20240131' | True | 1 | 2024-01-01 00:00:00+00:00
-- +1 | 1 | NULL | example.com | 'https://example.com/x' | True | 1 | 2024-01-01 00:00:00+00:00

--- case: the types of values
--- covers: Q1 typeof
--- spark: DuckDB calls types otherwise
SELECT customer, typeof(customer) AS c, typeof(AVG(amount)) AS a, typeof(SUM(amount + 1.5)) AS s FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (1, 1, 5);
--- change
INSERT INTO orders VALUES (2, 2, 6), (3, 1, 6);
--- delta
-- +1 | 2 | int | double | decimal(22,1)

--- case: a column has the name of a set operation
--- covers: Q1 names as they are written
SELECT id AS minus, amount AS except FROM orders;
--- before
INSERT INTO orders VALUES (1, 1, 5);
--- change
INSERT INTO orders VALUES (2, 1, 6);
--- delta
-- +1 | 2 | 6

--- case: formats as they are written
--- covers: Q1 formats of dates
--- spark: DuckDB has other formats
SELECT id, date_format(TRY_CAST(region AS DATE), 'y') AS y, to_date(IF(region LIKE '____-__-__', region, NULL), 'y-MM-dd') AS d, date_add(to_date(IF(region LIKE '____-__-__', region, NULL), 'yyyy-MM-dd'), 1) AS e, levenshtein(region, '0987', 2) AS far FROM customers;
--- before
INSERT INTO customers VALUES (1, '0987-01-02');
--- change
UPDATE customers SET region = '0988-02-03' WHERE id = 1;
--- delta
-- -1 | 1 | 987 | 0987-01-02 | 0987-01-03 | -1
-- +1 | 1 | 988 | 0988-02-03 | 0988-02-04 | -1

--- case: times of another zone
--- covers: Q1 times of another zone
--- spark: DuckDB has no such functions
SELECT id, from_utc_timestamp(happened, 'America/New_York') AS there, to_utc_timestamp(happened, 'Asia/Tokyo') AS here FROM visits WHERE from_utc_timestamp(happened, 'Asia/Tokyo') > TIMESTAMP '2024-01-02 00:00:00';
--- before
INSERT INTO visits VALUES (1, TIMESTAMP '2024-01-01 16:00:00', NULL, NULL), (2, TIMESTAMP '2024-01-01 10:00:00', NULL, NULL);
--- change
UPDATE visits SET happened = TIMESTAMP '2024-01-01 20:00:00' WHERE id = 2;
--- delta
-- +1 | 2 | 2024-01-01 15:00:00+00:00 | 2024-01-01 11:00:00+00:00

--- case: times moved and counted by units
--- covers: Q1 units of time as arguments
--- spark: DuckDB has no such functions
SELECT id, timestampadd(HOUR, id, happened) AS later, TIMESTAMPDIFF(MINUTE, TIMESTAMP '2024-01-01 00:00:00', happened) AS minutes FROM visits;
--- before
INSERT INTO visits VALUES (1, TIMESTAMP '2024-01-01 16:00:00', NULL, NULL);
--- change
INSERT INTO visits VALUES (2, TIMESTAMP '2024-01-01 20:00:00', NULL, NULL), (3, NULL, NULL, NULL);
--- delta
-- +1 | 2 | 2024-01-01 22:00:00+00:00 | 1200
-- +1 | 3 | NULL | NULL
