--- case: a value that differs from one evaluation to the next
SELECT id, rand() AS r FROM orders;
--- error
-- rand() cannot be maintained

--- case: a new identifier for each evaluation
SELECT id, uuid() AS r FROM orders;
--- error
-- uuid() cannot be maintained

--- case: a number that depends on the partition
SELECT id, monotonically_increasing_id() AS r FROM orders;
--- error
-- monotonically_increasing_id() cannot be maintained

--- case: the file that a row was read from
SELECT id, input_file_name() AS r FROM orders;
--- error
-- input_file_name() cannot be maintained

--- case: today
SELECT id, current_date AS r FROM orders;
--- error
-- current_date cannot be maintained yet

--- case: today, called as a function
SELECT id FROM orders WHERE id > year(current_date());
--- error
-- current_date() cannot be maintained yet

--- case: now
SELECT id, now() AS r FROM orders;
--- error
-- now() cannot be maintained yet

--- case: the seconds of now
SELECT id, unix_timestamp() AS r FROM orders;
--- error
-- unix_timestamp() cannot be maintained yet

--- case: who is asking
SELECT id, current_user() AS r FROM orders;
--- error
-- current_user() cannot be maintained yet

--- case: a window function
SELECT id, row_number() OVER (ORDER BY id) AS r FROM orders;
--- error
-- a window function is not supported yet

--- case: an aggregate over a window
SELECT id, SUM(amount) OVER (PARTITION BY customer) AS r FROM orders;
--- error
-- a window function is not supported yet

--- case: QUALIFY
SELECT id FROM orders QUALIFY row_number() OVER (ORDER BY id) = 1;
--- error
-- QUALIFY is not supported yet

--- case: EXISTS
SELECT id FROM orders AS o WHERE EXISTS (SELECT 1 FROM customers AS c WHERE c.id = o.customer);
--- error
-- EXISTS is not supported yet

--- case: IN a subquery
SELECT id FROM orders WHERE customer IN (SELECT id FROM customers);
--- error
-- IN (SELECT …) is not supported yet

--- case: IN a subquery inside an expression
SELECT IF(id IN (SELECT id FROM customers), 1, 0) AS x FROM orders;
--- error
-- IN (SELECT …) is not supported yet

--- case: NOT IN a subquery under OR
SELECT id FROM orders WHERE id = 1 OR customer NOT IN (SELECT id FROM customers);
--- error
-- IN (SELECT …) is not supported yet

--- case: a scalar subquery among the outputs
SELECT id, (SELECT MAX(id) FROM customers) AS m FROM orders;
--- error
-- a scalar subquery is not supported yet

--- case: a scalar subquery in WHERE
SELECT id FROM orders WHERE amount = (SELECT MAX(amount) FROM orders);
--- error
-- a scalar subquery is not supported yet

--- case: a subquery in the FILTER of an aggregate
SELECT SUM(amount) FILTER (WHERE id IN (SELECT id FROM customers)) AS s FROM orders;
--- error
-- IN (SELECT …) is not supported yet

--- case: ANY of a subquery
SELECT id FROM orders WHERE amount = ANY (SELECT id FROM customers);
--- error
-- any() is not supported yet

--- case: ALL of a subquery
SELECT id FROM orders WHERE amount > ALL (SELECT id FROM customers);
--- error
-- ALL is not supported yet

--- case: a lateral subquery
SELECT o.id FROM orders AS o, LATERAL (SELECT c.id FROM customers AS c WHERE c.id = o.customer) AS t;
--- error
-- LATERAL is not supported yet

--- case: a lateral view
SELECT id, x FROM orders LATERAL VIEW explode(array(id, amount)) e AS x;
--- error
-- explode() is not supported yet

--- case: explode among the outputs
SELECT id, explode(array(id, amount)) AS x FROM orders;
--- error
-- explode() is not supported yet

--- case: a table function in FROM
SELECT id FROM range(10);
--- error
-- a table function is not supported yet

--- case: rows written into the query
SELECT t.id FROM (VALUES (1), (2)) AS t(id);
--- error
-- VALUES is not supported yet

--- case: recursion
WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r;
--- error
-- WITH RECURSIVE is not supported yet

--- case: LIMIT without ORDER BY
SELECT id FROM orders LIMIT 5;
--- error
-- LIMIT is not supported yet

--- case: LIMIT with ORDER BY
SELECT id FROM orders ORDER BY id LIMIT 5;
--- error
-- LIMIT is not supported yet

--- case: LIMIT inside a subquery
SELECT id FROM (SELECT id FROM orders ORDER BY id LIMIT 5) AS t;
--- error
-- LIMIT is not supported yet

--- case: OFFSET
SELECT id FROM orders ORDER BY id OFFSET 1;
--- error
-- OFFSET is not supported yet

--- case: INTERSECT
SELECT id FROM orders INTERSECT SELECT id FROM customers;
--- error
-- INTERSECT is not supported yet

--- case: EXCEPT
SELECT id FROM orders EXCEPT ALL SELECT id FROM customers;
--- error
-- EXCEPT is not supported yet

--- case: MINUS
SELECT id FROM orders MINUS SELECT id FROM customers;
--- error
-- EXCEPT is not supported yet

--- case: ROLLUP
SELECT customer, COUNT(*) AS n FROM orders GROUP BY ROLLUP (customer);
--- error
-- ROLLUP is not supported yet

--- case: WITH CUBE
SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer WITH CUBE;
--- error
-- CUBE is not supported yet

--- case: GROUPING SETS
SELECT customer, COUNT(*) AS n FROM orders GROUP BY GROUPING SETS ((customer), ());
--- error
-- GROUPING SETS is not supported yet

--- case: GROUP BY ALL
SELECT customer, COUNT(*) AS n FROM orders GROUP BY ALL;
--- error
-- GROUP BY ALL is not supported yet

--- case: PIVOT
SELECT * FROM orders PIVOT (SUM(amount) FOR customer IN (1, 2));
--- error
-- PIVOT is not supported yet

--- case: UNPIVOT
SELECT * FROM orders UNPIVOT (x FOR y IN (customer, amount));
--- error
-- PIVOT is not supported yet

--- case: a sample
SELECT id FROM orders TABLESAMPLE (10 PERCENT);
--- error
-- TABLESAMPLE cannot be maintained

--- case: NATURAL JOIN
SELECT * FROM orders NATURAL JOIN customers;
--- error
-- NATURAL JOIN is not supported yet

--- case: a semi join
SELECT id FROM orders LEFT SEMI JOIN customers USING (id);
--- error
-- LEFT SEMI JOIN is not supported yet

--- case: an anti join
SELECT o.id FROM orders AS o LEFT ANTI JOIN customers AS c ON o.id = c.id;
--- error
-- LEFT ANTI JOIN is not supported yet

--- case: a join in parentheses
SELECT o.id FROM orders AS o JOIN (customers AS c JOIN regions AS r ON c.region = r.name) ON o.id = c.id;
--- error
-- a table or a join in parentheses is not supported yet

--- case: an aggregate that collects
SELECT customer, collect_list(amount) AS x FROM orders GROUP BY customer;
--- error
-- collect_list() is not supported yet

--- case: an aggregate of moments
SELECT customer, stddev(amount) AS x FROM orders GROUP BY customer;
--- error
-- stddev() is not supported yet

--- case: an aggregate under another name
SELECT customer, max_by(amount, id) AS x FROM orders GROUP BY customer;
--- error
-- max_by() is not supported yet

--- case: an aggregate that looks like a function of one row
SELECT every(paid) AS x FROM sales;
--- error
-- every() is not supported yet

--- case: an average that does not fail
SELECT try_avg(amount) AS x FROM orders;
--- error
-- try_avg() is not supported yet

--- case: a percentile
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) AS x FROM orders;
--- error
-- percentile_cont() is not supported yet

--- case: a count of several values
SELECT COUNT(amount, customer) AS n FROM orders;
--- error
-- COUNT of several values is not supported yet

--- case: GROUPING without grouping sets
SELECT customer, grouping(customer) AS x FROM orders GROUP BY customer;
--- error
-- grouping() is not supported yet

--- case: a function of the user's own
SELECT id, my_function(amount) AS x FROM orders;
--- error
-- my_function() is not supported yet

--- case: a lambda
SELECT id, zip_with(array(id), array(amount), (x, y) -> x + y) AS x FROM orders;
--- error
-- zip_with() is not supported yet

--- case: a lambda over one array
SELECT id, filter(array(id, amount), x -> x > 1) AS x FROM orders;
--- error
-- a lambda is not supported yet

--- case: a map
SELECT id, map('a', amount) AS x FROM orders;
--- error
-- map() is not supported yet

--- case: a format that would be lost
SELECT id, to_char(amount, '99G999') AS x FROM orders;
--- error
-- to_char() is not supported yet

--- case: JSON that would be taken for a string
SELECT id, parse_json('1') AS x FROM orders;
--- error
-- parse_json() is not supported yet

--- case: a time window
SELECT session_window(sold, '5 minutes') AS w FROM sales;
--- error
-- session_window() is not supported yet

--- case: a collation
SELECT region COLLATE UTF8_LCASE AS r FROM customers;
--- error
-- COLLATE is not supported yet

--- case: the type TIME
SELECT CAST(region AS TIME) AS t FROM customers;
--- error
-- the type TIME is not supported yet

--- case: DISTINCT ON
SELECT DISTINCT ON (customer) id, customer FROM orders;
--- error
-- DISTINCT ON is not supported yet

--- case: time travel
SELECT id FROM orders VERSION AS OF 3;
--- error
-- time travel is not supported yet

--- case: time travel in one word
SELECT id FROM orders@v3;
--- error
-- a parameter is not supported yet

--- case: a parameter
SELECT id FROM orders WHERE id = :wanted;
--- error
-- a parameter is not supported yet

--- case: a variable
SELECT id FROM orders WHERE id = ${wanted};
--- error
-- a parameter is not supported yet

--- case: UNION BY NAME
SELECT id FROM orders UNION ALL BY NAME SELECT id FROM customers;
--- error
-- UNION BY NAME is not supported yet

--- case: locking rows
SELECT id FROM orders FOR UPDATE;
--- error
-- a locking clause is not supported yet

--- case: a script
SELECT TRANSFORM(id) USING 'cat' AS (x) FROM orders;
--- error
-- transform() is not supported yet

--- case: no table at all
SELECT 1 AS one;
--- error
-- a SELECT without FROM is not supported

--- case: one side of a union without a table
SELECT id FROM orders UNION ALL SELECT 1;
--- error
-- a SELECT without FROM is not supported

--- case: two common table expressions of one name
WITH a AS (SELECT id FROM orders) SELECT id FROM (WITH a AS (SELECT id FROM customers) SELECT id FROM a) AS t;
--- error
-- two common table expressions are called "a"

--- case: FROM before SELECT
FROM orders SELECT id;
--- error
-- the query does not begin with SELECT

--- case: a pipe
FROM orders |> SELECT id;
--- error
-- the query does not begin with SELECT

--- case: parentheses around everything
(SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer);
--- error
-- the query does not begin with SELECT

--- case: an output without a name
SELECT id, amount + 1 FROM orders;
--- error
-- an output column has no name: amount + 1

--- case: two outputs of one name
SELECT id, amount AS ID FROM orders;
--- error
-- two output columns are called "id"

--- case: two columns of one name under a star
SELECT * FROM orders AS o JOIN customers AS c ON o.customer = c.id;
--- error
-- two output columns are called "id"

--- case: a name that holds state
SELECT id AS __st_n FROM orders;
--- error
-- an output column is called "__st_n"

--- case: an output that is NULL in every row
SELECT id, NULL AS nothing FROM orders;
--- error
-- the column "nothing" is NULL in every row

--- case: a table that is not there
SELECT id FROM order;
--- error
-- there is no table "order"

--- case: a column that is not there
SELECT amont FROM orders;
--- error
-- column "amont" does not exist

--- case: a column that this table does not have
SELECT o.region FROM orders AS o;
--- error
-- column "o.region" does not exist

--- case: an alias that is not there
SELECT c.id FROM orders AS o;
--- error
-- column "c.id" does not exist

--- case: an alias that renames some of the columns
SELECT a FROM orders AS o(a, b);
--- error
-- "o" names 2 of 3 columns

--- case: a column of two tables
SELECT id FROM orders AS o JOIN customers AS c ON o.customer = c.id;
--- error
-- column "id" is ambiguous

--- case: two tables under one alias
SELECT o.id FROM orders AS o JOIN customers AS o ON true;
--- error
-- two tables are called "o"

--- case: an ordinal beyond the outputs
SELECT customer FROM orders GROUP BY 2;
--- error
-- there is no output column 2

--- case: a column that is neither grouped nor aggregated
SELECT customer, amount FROM orders GROUP BY customer;
--- error
-- "amount" is neither in GROUP BY nor inside an aggregate

--- case: HAVING a column that is not grouped
SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer HAVING amount > 1;
--- error
-- "amount" is neither in GROUP BY nor inside an aggregate

--- case: an aggregate in WHERE
SELECT id FROM orders WHERE COUNT(*) > 1;
--- error
-- COUNT stands in WHERE

--- case: an aggregate of an aggregate
SELECT SUM(COUNT(*)) AS s FROM orders;
--- error
-- COUNT stands inside SUM

--- case: a union of two widths
SELECT id, amount FROM orders UNION ALL SELECT id FROM customers;
--- error
-- UNION of 2 columns with 1

--- case: not a query
DELETE FROM orders;
--- error
-- DELETE does not begin a query

--- case: two queries
SELECT id FROM orders; SELECT id FROM customers;
--- error
-- the text holds 2 statements

--- case: broken SQL
SELECT id FROM orders WHERE;
--- error
-- the query is not valid SQL

--- case: a string that does not end
SELECT 'abc FROM orders;
--- error
-- the query is not valid SQL
