--- case: an update moves a row between groups
--- covers: Q4 GROUP BY columns; Q5 COUNT and SUM
SELECT customer, SUM(amount) AS total, COUNT(*) AS n FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6), (12, 2, 7);
--- change
UPDATE orders SET customer = 2 WHERE id = 10;
--- delta
-- -1 | 1 | 11 | 2
-- +1 | 1 | 6 | 1
-- -1 | 2 | 7 | 1
-- +1 | 2 | 12 | 2

--- case: the last row of a group goes
--- covers: Q4 a group that is emptied; Q5 COUNT(*)
SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
DELETE FROM orders;
--- delta
-- -1 | 1 | 1

--- case: a group that does not count its rows goes with its last row
--- covers: Q4 a group that is emptied; Q5 SUM
SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
--- change
DELETE FROM orders WHERE customer = 1;
--- delta
-- -1 | 1 | 5

--- case: a group whose sum is zero is still there
--- covers: Q5 SUM that is 0
SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, -5);
--- delta
-- -1 | 1 | 5
-- +1 | 1 | 0

--- case: a group goes and another of the same key comes in one window
--- covers: Q4 a group that is emptied and filled again
SELECT customer, SUM(amount) AS total, COUNT(*) AS n FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5);
--- change
DELETE FROM orders;
INSERT INTO orders VALUES (12, 1, 9);
--- delta
-- -1 | 1 | 10 | 2
-- +1 | 1 | 9 | 1

--- case: a row that comes and goes within the window leaves no group
--- covers: Q4 a group within a window; R5 rows that cancel
SELECT customer, SUM(amount) AS total, MIN(amount) AS least FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 2, 5);
DELETE FROM orders WHERE id = 11;
--- delta

--- case: NULL is a group like any other
--- covers: Q28 a NULL group key; Q5 COUNT(x)
SELECT customer, COUNT(amount) AS n, COUNT(*) AS rows_ FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, NULL, 5);
--- change
INSERT INTO orders VALUES (11, NULL, NULL);
--- delta
-- -1 | NULL | 1 | 1
-- +1 | NULL | 1 | 2

--- case: the group of NULL goes when its last row goes
--- covers: Q28 a NULL group key; Q4 a group that is emptied
SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, NULL, 5), (11, 1, 5);
--- change
DELETE FROM orders WHERE customer IS NULL;
--- delta
-- -1 | NULL | 1

--- case: the measures of nothing but NULL are NULL, and the count is 0
--- covers: Q5 SUM, AVG, COUNT(x) of NULLs; Q6 MIN and MAX of NULLs
SELECT customer, SUM(amount) AS total, AVG(amount) AS mean, MIN(amount) AS least, MAX(amount) AS most, COUNT(amount) AS n FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, NULL), (11, 1, 5);
--- change
DELETE FROM orders WHERE id = 11;
--- delta
-- -1 | 1 | 5 | 5 | 5 | 5 | 1
-- +1 | 1 | NULL | NULL | NULL | NULL | 0

--- case: the first value enters a group of NULLs
--- covers: Q5 SUM, AVG, COUNT(x) of NULLs; Q6 MIN and MAX of NULLs
SELECT customer, SUM(amount) AS total, AVG(amount) AS mean, MIN(amount) AS least, MAX(amount) AS most, COUNT(amount) AS n FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, NULL);
--- change
INSERT INTO orders VALUES (11, 1, 0);
--- delta
-- -1 | 1 | NULL | NULL | NULL | NULL | 0
-- +1 | 1 | 0 | 0 | 0 | 0 | 1

--- case: the minimum goes and the runner-up takes its place
--- covers: Q6 MIN that is lost
SELECT customer, MIN(amount) AS least FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6);
--- change
DELETE FROM orders WHERE id = 10;
--- delta
-- -1 | 1 | 5
-- +1 | 1 | 6

--- case: the maximum goes and the runner-up takes its place
--- covers: Q6 MAX that is lost
SELECT customer, MAX(amount) AS most FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6);
--- change
DELETE FROM orders WHERE id = 11;
--- delta
-- -1 | 1 | 6
-- +1 | 1 | 5

--- case: one of two copies of the minimum goes
--- covers: Q6 MIN with copies; Q26 copies in a group
SELECT customer, MIN(amount) AS least, MAX(amount) AS most FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5), (12, 1, 6);
--- change
DELETE FROM orders WHERE id = 10;
--- delta

--- case: the minimum goes and a lower one comes in the same window
--- covers: Q6 MIN that is lost
SELECT customer, MIN(amount) AS least FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6);
--- change
DELETE FROM orders WHERE id = 10;
INSERT INTO orders VALUES (12, 1, 4);
--- delta
-- -1 | 1 | 5
-- +1 | 1 | 4

--- case: the minimum goes and a higher one comes in the same window
--- covers: Q6 MIN that is lost
SELECT customer, MIN(amount) AS least FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 7);
--- change
DELETE FROM orders WHERE id = 10;
INSERT INTO orders VALUES (12, 1, 6);
--- delta
-- -1 | 1 | 5
-- +1 | 1 | 6

--- case: a value above the minimum goes
--- covers: Q6 MIN that stays
SELECT customer, MIN(amount) AS least, COUNT(*) AS n FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 7);
--- change
DELETE FROM orders WHERE id = 11;
--- delta
-- -1 | 1 | 5 | 2
-- +1 | 1 | 5 | 1

--- case: extremes of strings, dates, decimals and booleans
--- covers: Q6 MIN and MAX of every type
SELECT product, MIN(sold) AS first, MAX(sold) AS last, MIN(price) AS cheapest, MAX(paid) AS any_paid, MIN(mass) AS lightest FROM sales GROUP BY product;
--- before
INSERT INTO sales VALUES ('tea', 1.50, 0.5, '2013-01-31', false), ('tea', 2.50, 0.25, '2013-01-01', NULL);
--- change
DELETE FROM sales WHERE price = 2.50;
INSERT INTO sales VALUES ('tea', 0.50, 0.75, '2014-01-31', true);
--- delta
-- -1 | tea | 2013-01-01 | 2013-01-31 | 1.50 | False | 0.25
-- +1 | tea | 2013-01-31 | 2014-01-31 | 0.50 | True | 0.5

--- case: the least and the most of groups named by a string
--- covers: Q6 MIN and MAX of every type; Q28 a NULL group key
SELECT region, MIN(id) AS least, MAX(id) AS most FROM customers GROUP BY region;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, NULL), (3, 'north');
--- change
DELETE FROM customers WHERE id = 1;
UPDATE customers SET region = 'north' WHERE id = 2;
--- delta
-- -1 | NULL | 2 | 2
-- -1 | north | 1 | 3
-- +1 | north | 2 | 3

--- case: sums of decimals are exact
--- covers: Q5 SUM and AVG of decimals
SELECT product, SUM(price) AS total, AVG(price) AS mean FROM sales GROUP BY product;
--- before
INSERT INTO sales (product, price) VALUES ('tea', 0.10), ('tea', 0.20);
--- change
INSERT INTO sales (product, price) VALUES ('tea', 0.30);
DELETE FROM sales WHERE price = 0.10;
--- delta
-- -1 | tea | 0.30 | 0.15
-- +1 | tea | 0.50 | 0.25

--- case: a sum of decimals too wide to weigh
--- covers: Q5 SUM of wide decimals; Q28 DECIMAL overflow
SELECT account, SUM(total) AS total, COUNT(*) AS n FROM ledger GROUP BY account;
--- before
INSERT INTO ledger VALUES (1, 1.5, 'x');
--- change
INSERT INTO ledger VALUES (1, 2.25, 'y'), (2, -1, NULL);
--- delta
-- -1 | 1 | 1.5000 | 1
-- +1 | 1 | 3.7500 | 2
-- +1 | 2 | -1.0000 | 1

--- case: sums of floats are exact where nothing goes
--- covers: Q5 SUM and AVG of floats
SELECT product, SUM(mass) AS total, AVG(mass) AS mean FROM sales GROUP BY product;
--- before
INSERT INTO sales (product, mass) VALUES ('tea', 0.5);
--- change
INSERT INTO sales (product, mass) VALUES ('tea', 0.25);
--- delta
-- -1 | tea | 0.5 | 0.5
-- +1 | tea | 0.75 | 0.375

--- case: a float that drowned the others goes, and they surface again
--- covers: Q5 SUM and AVG of floats; Q28 floats that lose digits
SELECT product, SUM(mass) AS total FROM sales GROUP BY product;
--- before
INSERT INTO sales (product, mass) VALUES ('tea', 1), ('tea', 1e16);
--- change
DELETE FROM sales WHERE mass = 1e16;
--- delta
-- -1 | tea | 1e+16
-- +1 | tea | 1

--- case: a NaN goes and the sum is a number again
--- covers: Q5 SUM and AVG of floats; Q28 NaN
SELECT product, SUM(mass) AS total, MAX(mass) AS most FROM sales GROUP BY product;
--- before
INSERT INTO sales (product, mass) VALUES ('tea', 0.5), ('tea', 'NaN');
--- change
DELETE FROM sales WHERE isnan(mass);
--- delta
-- -1 | tea | nan | nan
-- +1 | tea | 0.5 | 0.5

--- case: NaN is one group, and so are the two zeros
--- covers: Q28 NaN and -0.0 as group keys
SELECT mass, COUNT(*) AS n FROM sales GROUP BY mass;
--- before
INSERT INTO sales (product, mass) VALUES ('tea', 'NaN'), ('milk', 0.0);
--- change
INSERT INTO sales (product, mass) VALUES ('tea', 'NaN'), ('milk', -0.0);
--- delta
-- -1 | 0 | 1
-- +1 | 0 | 2
-- -1 | nan | 1
-- +1 | nan | 2

--- case: a total over nothing is still a row
--- covers: Q4 no GROUP BY; Q28 an empty input
SELECT COUNT(*) AS n, SUM(amount) AS total FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
DELETE FROM orders;
--- delta
-- -1 | 1 | 5
-- +1 | 0 | NULL

--- case: the first row enters a total over nothing
--- covers: Q4 no GROUP BY; Q28 an empty input
SELECT COUNT(*) AS n, SUM(amount) AS total, AVG(amount) AS mean, MIN(amount) AS least FROM orders;
--- before
--- change
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6);
--- delta
-- -1 | 0 | NULL | NULL | NULL
-- +1 | 2 | 11 | 5.5 | 5

--- case: a total of floats that no changed row reaches
--- covers: Q4 no GROUP BY; Q5 SUM and AVG of floats
SELECT COUNT(*) AS n, SUM(mass) AS total, AVG(mass) AS mean FROM sales WHERE product = 'tea';
--- before
INSERT INTO sales (product, mass) VALUES ('tea', 0.5), ('milk', 0.25);
--- change
INSERT INTO sales (product, mass) VALUES ('milk', 0.75);
DELETE FROM sales WHERE mass = 0.25;
--- delta

--- case: a total of wide decimals that no changed row reaches
--- covers: Q4 no GROUP BY; Q5 SUM of wide decimals
SELECT SUM(total) AS total FROM ledger WHERE account < 5;
--- before
INSERT INTO ledger VALUES (1, 1.5, 'x');
--- change
INSERT INTO ledger VALUES (9, 2.25, 'y');
--- delta

--- case: a total that loses its least value
--- covers: Q4 no GROUP BY; Q6 MIN that is lost
SELECT MIN(amount) AS least, MAX(amount) AS most FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6);
--- change
DELETE FROM orders WHERE id = 10;
--- delta
-- -1 | 5 | 6
-- +1 | 6 | 6

--- case: a change that cancels inside the group changes nothing
--- covers: Q5 SUM; R5 rows that cancel
SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6);
--- change
UPDATE orders SET amount = 6 WHERE id = 10;
UPDATE orders SET amount = 5 WHERE id = 11;
--- delta

--- case: an average is computed from its sum and count, not from the average before
--- covers: Q5 AVG
SELECT customer, AVG(amount) AS mean FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 1), (11, 1, 1), (12, 1, 2);
--- change
DELETE FROM orders WHERE id = 12;
--- delta
-- -1 | 1 | 1.333333333
-- +1 | 1 | 1

--- case: GROUP BY an expression
--- covers: Q4 GROUP BY an expression
SELECT amount % 2 AS odd, COUNT(*) AS n FROM orders GROUP BY amount % 2;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
UPDATE orders SET amount = 6;
--- delta
-- -1 | 1 | 1
-- +1 | 0 | 1

--- case: GROUP BY an ordinal
--- covers: Q4 GROUP BY an ordinal
SELECT customer + 1 AS next, SUM(amount) AS total FROM orders GROUP BY 1;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 5);
--- delta
-- -1 | 2 | 5
-- +1 | 2 | 10

--- case: GROUP BY an alias
--- covers: Q4 GROUP BY an alias
SELECT CASE WHEN amount > 3 THEN 'large' ELSE 'small' END AS size, COUNT(*) AS n FROM orders GROUP BY size;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
UPDATE orders SET amount = 3;
--- delta
-- -1 | large | 1
-- +1 | small | 1

--- case: GROUP BY a name that is a column and an alias means the column
--- covers: Q4 GROUP BY an alias
SELECT customer + 1 AS amount, COUNT(*) AS n FROM orders GROUP BY amount, customer;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6);
--- change
INSERT INTO orders VALUES (12, 1, 6);
--- delta
-- -1 | 2 | 1
-- +1 | 2 | 2

--- case: a key that the query does not return
--- covers: Q4 a key that is not returned
SELECT COUNT(*) AS n FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 5);
--- change
INSERT INTO orders VALUES (12, 1, 5);
--- delta
-- -1 | 1
-- +1 | 2

--- case: a key that is returned only as part of an expression
--- covers: Q4 a key that is not returned; Q28 a NULL group key
SELECT customer * 10 AS tens, COUNT(*) AS n FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (12, 1, 5), (13, NULL, 1);
--- delta
-- -1 | 10 | 1
-- +1 | 10 | 2
-- +1 | NULL | 1

--- case: GROUP BY without any aggregate
--- covers: Q4 GROUP BY without an aggregate
SELECT customer FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5), (12, 2, 5);
--- change
DELETE FROM orders WHERE id <> 10;
--- delta
-- -1 | 2

--- case: measures inside expressions
--- covers: Q5 aggregates inside expressions
SELECT customer, SUM(amount) * 2 + COUNT(*) AS score, COALESCE(SUM(amount), 0) AS total, CASE WHEN COUNT(*) > 1 THEN 'many' ELSE 'one' END AS size FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, NULL);
--- change
INSERT INTO orders VALUES (12, 1, 5);
--- delta
-- -1 | 1 | 11 | 5 | one
-- +1 | 1 | 22 | 10 | many

--- case: the sum of a CASE
--- covers: Q5 SUM of CASE
SELECT customer, SUM(CASE WHEN amount > 5 THEN 1 ELSE 0 END) AS large, SUM(CASE WHEN amount IN (5, 6) THEN amount END) AS some FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 9);
--- change
UPDATE orders SET amount = amount + 1;
--- delta
-- -1 | 1 | 1 | 5
-- +1 | 1 | 2 | 6

--- case: the sum of COALESCE is 0, not NULL
--- covers: Q5 SUM of COALESCE
SELECT customer, SUM(COALESCE(amount, 0)) AS total FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, NULL);
--- change
DELETE FROM orders WHERE id = 10;
--- delta
-- -1 | 1 | 5
-- +1 | 1 | 0

--- case: FILTER counts and adds the rows that it lets through
--- covers: Q8 FILTER
SELECT customer, COUNT(*) FILTER (WHERE amount > 5) AS large, SUM(amount) FILTER (WHERE amount <= 5) AS small, COUNT(*) AS n FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 9);
--- change
UPDATE orders SET amount = 7 WHERE id = 10;
--- delta
-- -1 | 1 | 1 | 5 | 2
-- +1 | 1 | 2 | NULL | 2

--- case: FILTER on the least, the most and the average
--- covers: Q8 FILTER
SELECT MIN(amount) FILTER (WHERE customer = 1) AS least, MAX(amount) FILTER (WHERE customer = 2) AS most, AVG(amount) FILTER (WHERE customer IS NULL) AS mean FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 9), (12, 2, 3);
--- change
UPDATE orders SET customer = 2 WHERE id = 10;
INSERT INTO orders VALUES (13, NULL, 1);
--- delta
-- -1 | 5 | 3 | NULL
-- +1 | 9 | 5 | 1

--- case: COUNT of distinct values
--- covers: Q7 COUNT(DISTINCT); Q8 DISTINCT inside an aggregate
SELECT customer, COUNT(DISTINCT amount) AS amounts FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5), (12, 1, 6);
--- change
DELETE FROM orders WHERE id IN (10, 12);
--- delta
-- -1 | 1 | 2
-- +1 | 1 | 1

--- case: COUNT of distinct pairs leaves out pairs with a NULL
--- covers: Q7 COUNT(DISTINCT); Q8 DISTINCT inside an aggregate; Q8 FILTER
SELECT COUNT(DISTINCT customer, amount) AS pairs, SUM(DISTINCT amount) AS total, COUNT(DISTINCT id) FILTER (WHERE amount > 1) AS ids FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5), (12, 1, NULL);
--- change
INSERT INTO orders VALUES (10, 2, 5), (13, NULL, NULL);
--- delta
-- -1 | 1 | 5 | 2
-- +1 | 2 | 5 | 2

--- case: a distinct count beside a sum
--- covers: Q7 COUNT(DISTINCT); Q8 DISTINCT inside an aggregate
SELECT customer, COUNT(DISTINCT amount) AS amounts, SUM(amount) AS total, MIN(id) AS first FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5);
--- change
DELETE FROM orders WHERE id = 10;
--- delta
-- -1 | 1 | 1 | 10 | 10
-- +1 | 1 | 1 | 5 | 11

--- case: the same measure twice
--- covers: Q5 one aggregate twice
SELECT customer, SUM(amount) AS total, SUM(amount) AS again, AVG(amount) AS mean, COUNT(amount) AS n FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 6);
--- delta
-- -1 | 1 | 5 | 5 | 5 | 1
-- +1 | 1 | 11 | 11 | 5.5 | 2

--- case: the same key twice
--- covers: Q4 one key twice
SELECT customer, customer AS again, COUNT(*) AS n FROM orders GROUP BY customer, 2;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 6);
--- delta
-- -1 | 1 | 1 | 1
-- +1 | 1 | 1 | 2

--- case: a constant beside a measure
--- covers: Q4 no GROUP BY; Q1 a constant
SELECT 'all' AS what, COUNT(1) AS n FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 6);
--- delta
-- -1 | all | 1
-- +1 | all | 2

--- case: a group key that is a constant
--- covers: Q4 GROUP BY a constant
SELECT 'all' AS what, COUNT(*) AS n FROM orders GROUP BY 'all';
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
DELETE FROM orders;
--- delta
-- -1 | all | 1

--- case: the select list ends in a comment
--- covers: Q4 GROUP BY columns; Q1 comments
SELECT customer, -- whose
  SUM(amount) AS total -- FROM all of them
FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 6);
--- delta
-- -1 | 1 | 5
-- +1 | 1 | 11

--- case: regions by revenue, joined and grouped
--- covers: Q5 aggregates over a join
SELECT c.region, SUM(o.amount) AS total, COUNT(*) AS n, AVG(o.amount) AS mean, MAX(o.amount) AS most
FROM orders AS o JOIN customers AS c ON o.customer = c.id WHERE o.amount > 0 GROUP BY c.region;
--- before
INSERT INTO customers VALUES (1, 'north');
INSERT INTO orders VALUES (10, 1, 4), (11, 1, 6);
--- change
UPDATE customers SET region = 'south';
--- delta
-- -1 | north | 10 | 2 | 5 | 6
-- +1 | south | 10 | 2 | 5 | 6

--- case: a partner and its rows go, and others come, above a join
--- covers: Q5 aggregates over a join; Q3 a key changes and its partner goes
SELECT c.region, SUM(o.amount) AS total, MIN(o.amount) AS least FROM orders AS o JOIN customers AS c ON o.customer = c.id GROUP BY c.region;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'north');
INSERT INTO orders VALUES (10, 1, 4), (11, 2, 6);
--- change
DELETE FROM customers WHERE id = 1;
UPDATE orders SET customer = 2 WHERE id = 10;
INSERT INTO orders VALUES (12, 2, 5);
--- delta
-- -1 | north | 10 | 4
-- +1 | north | 15 | 4

--- case: groups named as capitals, dots and reserved words
--- covers: Q4 names as they are written
SELECT `two words` AS `Group`, SUM(`a.b`) AS `the.Sum`, MAX(`UPPER`) AS `MAX`, COUNT(*) AS `count` FROM odd AS `My Table` GROUP BY `two words`, `Order`;
--- before
INSERT INTO odd VALUES (1, 2, 'x', 3);
--- change
INSERT INTO odd VALUES (1, 2, 'x', 4);
--- delta
-- -1 | x | 2 | 3 | 1
-- +1 | x | 4 | 4 | 2

--- case: an alias with dots
--- covers: Q4 names as they are written
SELECT `o.x`.customer, AVG(`o.x`.amount) AS mean FROM orders AS `o.x` GROUP BY `o.x`.customer;
--- before
INSERT INTO orders VALUES (10, 1, 4);
--- change
INSERT INTO orders VALUES (11, 1, 5);
--- delta
-- -1 | 1 | 4
-- +1 | 1 | 4.5

--- case: a sum of 38 digits follows what comes and what goes
--- covers: Q28 DECIMAL of 38 digits
SELECT account, SUM(total) AS total FROM ledger GROUP BY account;
--- before
INSERT INTO ledger VALUES (1, 10.5, 'a'), (1, 2, 'b'), (2, 7, 'c');
--- change
INSERT INTO ledger VALUES (1, 0.25, 'd');
DELETE FROM ledger WHERE note = 'b';
DELETE FROM ledger WHERE account = 2;
--- delta
-- +1 | 1 | 10.7500
-- -1 | 1 | 12.5000
-- -1 | 2 | 7.0000

--- case: copies of a value of 38 digits are grouped again
--- covers: Q28 DECIMAL of 38 digits
SELECT account, SUM(total) AS total, COUNT(*) AS n FROM ledger GROUP BY account;
--- before
INSERT INTO ledger VALUES (1, 10, 'a');
--- change
INSERT INTO ledger VALUES (1, 10, 'b'), (1, 10, 'b'), (1, 10, 'b');
--- delta
-- -1 | 1 | 10.0000 | 1
-- +1 | 1 | 40.0000 | 4

--- case: more digits behind the point than an addition keeps
--- covers: Q28 DECIMAL of 38 digits
SELECT account, SUM(TRY_CAST(note AS DECIMAL(38, 12))) AS total FROM ledger GROUP BY account;
--- before
INSERT INTO ledger VALUES (1, 1, '0.333333333333');
--- change
INSERT INTO ledger VALUES (1, 1, '0.111111111111');
--- delta
-- -1 | 1 | 0.333333333333
-- +1 | 1 | 0.444444444444

--- case: the average of values of 38 digits
--- covers: Q28 DECIMAL of 38 digits
--- spark: DuckDB's average of decimals is a float
SELECT account, AVG(total) AS mean, SUM(total) AS total FROM ledger GROUP BY account;
--- before
INSERT INTO ledger VALUES (1, 10, 'a'), (1, 5, 'b');
--- change
INSERT INTO ledger VALUES (1, 5, 'c');
--- delta
-- +1 | 1 | 6.66666667 | 20.0000
-- -1 | 1 | 7.50000000 | 15.0000

--- case: FROM before SELECT
--- covers: Q1 FROM before SELECT
FROM orders AS o JOIN customers AS c ON o.customer = c.id
SELECT c.region, SUM(o.amount) AS total -- of a region
GROUP BY c.region;
--- before
INSERT INTO orders VALUES (1, 1, 5);
INSERT INTO customers VALUES (1, 'north');
--- change
INSERT INTO orders VALUES (2, 1, 6);
--- delta
-- -1 | north | 5
-- +1 | north | 11

--- case: parentheses around everything
--- covers: Q1 parentheses around a query
((SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer));
--- before
INSERT INTO orders VALUES (1, 1, 5);
--- change
INSERT INTO orders VALUES (2, 1, 6);
--- delta
-- -1 | 1 | 5
-- +1 | 1 | 11

--- case: rows that are counted where none of some columns is NULL
--- covers: Q6 COUNT of several columns by a star
--- spark: to DuckDB, a star in COUNT is that of COUNT(*)
SELECT customer, COUNT(*) AS n, COUNT(* EXCEPT (id)) AS known, COUNT(*, 1) AS every FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, NULL), (3, 2, 7);
--- change
INSERT INTO orders VALUES (4, 1, NULL), (NULL, 2, 8);
UPDATE orders SET amount = 6 WHERE id = 2;
--- delta
-- -1 | 1 | 2 | 1 | 1
-- +1 | 1 | 3 | 2 | 2
-- -1 | 2 | 1 | 1 | 1
-- +1 | 2 | 2 | 2 | 1
