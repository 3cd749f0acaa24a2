--- case: a value that differs from one evaluation to the next
--- covers: Q24 a value that differs from one evaluation to the next
SELECT id, rand() AS r FROM orders;
--- error
-- rand() cannot be maintained

--- case: a histogram, whose bins depend on the order of the rows
--- covers: Q24 an aggregate that depends on the order of the rows
SELECT customer, histogram_numeric(amount, 3) AS h FROM orders GROUP BY customer;
--- error
-- histogram_numeric() cannot be maintained

--- case: a new identifier for each evaluation
--- covers: Q24 a new identifier for each evaluation
SELECT id, uuid() AS r FROM orders;
--- error
-- uuid() cannot be maintained

--- case: all columns of a table function whose names only Spark knows
--- covers: Q24 all columns of a table function whose names only Spark knows
SELECT * FROM visits LATERAL VIEW inline(from_json('[]', 'array<struct<a: int>>')) t;
--- error
-- * over a table function whose columns have no names
--- fixed
SELECT * FROM visits LATERAL VIEW inline(from_json('[]', 'array<struct<a: int>>')) t AS a;

--- case: all columns of structs that the query makes under the name of a column of a source
--- covers: Q24 all columns of a table function whose names only Spark knows
SELECT v.id, t.* FROM (SELECT id, named_struct('q', id) AS place FROM visits) AS v LATERAL VIEW inline(array(place)) t;
--- error
-- * over a table function whose columns have no names
--- fixed
SELECT v.id, t.* FROM (SELECT id, named_struct('q', id) AS place FROM visits) AS v LATERAL VIEW inline(array(place)) t AS q;

--- case: a number that depends on the partition
--- covers: Q24 a number that depends on the partition
SELECT id, monotonically_increasing_id() AS r FROM orders;
--- error
-- monotonically_increasing_id() cannot be maintained

--- case: the file that a row was read from
--- covers: Q24 the file that a row was read from
SELECT id, input_file_name() AS r FROM orders;
--- error
-- input_file_name() cannot be maintained

--- case: who is asking
--- covers: Q24 who is asking
SELECT id, current_user() AS r FROM orders;
--- error
-- current_user() cannot be maintained
--- fixed
SELECT id, 'me' AS r FROM orders;

--- case: a table function in FROM
--- covers: Q29 a table function in FROM
SELECT id FROM range(10);
--- error
-- the query reads no table

--- case: rows written into the query
--- covers: Q29 rows written into the query
SELECT t.id FROM (VALUES (1), (2)) AS t(id);
--- error
-- the query reads no table

--- case: a sample
--- covers: Q23 a sample
SELECT id FROM orders TABLESAMPLE (10 PERCENT);
--- error
-- TABLESAMPLE cannot be maintained
--- fixed
SELECT id FROM orders WHERE pmod(hash(id), 10) = 0;

--- case: a function of the user's own
--- covers: Q29 a function of the user's own
SELECT id, my_function(amount) AS x FROM orders;
--- error
-- my_function() is neither a function of Spark nor a declared one

--- case: a collation of an output column
--- covers: Q28 a collation of an output column
SELECT region COLLATE UTF8_LCASE AS r FROM customers;
--- error
-- COLLATE of a stored value
--- fixed
SELECT LOWER(region) AS r FROM customers;

--- case: groups by a collation
--- covers: Q28 groups by a collation
SELECT COUNT(*) AS n FROM customers GROUP BY region COLLATE UTF8_LCASE;
--- error
-- COLLATE of a stored value
--- fixed
SELECT COUNT(*) AS n FROM customers GROUP BY LOWER(region);

--- case: the greatest by a collation
--- covers: Q28 the greatest by a collation
SELECT MAX(region COLLATE UTF8_LCASE) = 'NORTH' AS is_north FROM customers;
--- error
-- COLLATE of a stored value
--- fixed
SELECT MAX(LOWER(region)) = 'north' AS is_north FROM customers;

--- case: windows by a collation
--- covers: Q28 windows by a collation
SELECT id, ROW_NUMBER() OVER (PARTITION BY region COLLATE UTF8_LCASE ORDER BY id) AS n FROM customers;
--- error
-- COLLATE of a stored value
--- fixed
SELECT id, ROW_NUMBER() OVER (PARTITION BY LOWER(region) ORDER BY id) AS n FROM customers;

--- case: the commonest value by a collation
--- covers: Q28 the commonest value by a collation
SELECT id, MODE() WITHIN GROUP (ORDER BY region COLLATE UTF8_LCASE) = 'x' AS m FROM customers GROUP BY id;
--- error
-- COLLATE of a stored value
--- fixed
SELECT id, MODE() WITHIN GROUP (ORDER BY LOWER(region)) = 'x' AS m FROM customers GROUP BY id;

--- case: a choice of values by a collation
--- covers: Q28 a choice of values by a collation
SELECT id, CASE WHEN id = 1 THEN region ELSE 'x' COLLATE UTF8_LCASE END AS r FROM customers;
--- error
-- COLLATE of a stored value
--- fixed
SELECT id, CASE WHEN id = 1 THEN region ELSE LOWER('x') END AS r FROM customers;

--- case: a collation by a function
--- covers: Q28 a collation by a function
SELECT nullif(collate(region, 'UNICODE_CI'), 'x') AS r FROM customers;
--- error
-- COLLATE of a stored value
--- fixed
SELECT nullif(LOWER(region), 'x') AS r FROM customers;

--- case: a cast to a collation
--- covers: Q28 a cast to a collation
SELECT CAST(region AS STRING COLLATE UTF8_LCASE) AS r FROM customers;
--- error
-- COLLATE of a stored value
--- fixed
SELECT LOWER(region) AS r FROM customers;

--- case: a cast to a list with a collation
--- covers: Q28 a cast to a collation
SELECT id FROM customers WHERE CAST(array(region) AS ARRAY<STRING COLLATE UTF8_LCASE>) = array('x');
--- error
-- COLLATE of a stored value
--- fixed
SELECT id FROM customers WHERE CAST(array(LOWER(region)) AS ARRAY<STRING>) = array('x');

--- case: rows without copies by a collation
--- covers: Q28 rows without copies by a collation
SELECT id FROM customers WHERE region IN (SELECT DISTINCT name COLLATE UTF8_LCASE FROM regions);
--- error
-- COLLATE of a stored value
--- fixed
SELECT id FROM customers WHERE region IN (SELECT DISTINCT LOWER(name) FROM regions);

--- case: the type TIME
--- covers: Q28 the type TIME
SELECT CAST(region AS TIME) AS t FROM customers;
--- error
-- the type TIME
--- fixed
SELECT CAST(region AS TIMESTAMP) AS t FROM customers;

--- case: DISTINCT ON
--- covers: Q10 DISTINCT ON
SELECT DISTINCT ON (customer) id, customer FROM orders;
--- error
-- Spark has no DISTINCT ON
--- fixed
SELECT id, customer FROM orders QUALIFY ROW_NUMBER() OVER (PARTITION BY customer ORDER BY id) = 1;

--- case: time travel
--- covers: Q29 time travel
SELECT id FROM orders VERSION AS OF 3;
--- error
-- time travel in a stream table
--- fixed
SELECT id FROM orders;

--- case: time travel in one word
--- covers: Q29 time travel in one word
SELECT id FROM orders@v3;
--- error
-- time travel in a stream table
--- fixed
SELECT id FROM orders;

--- case: a parameter
--- covers: Q29 a parameter
SELECT id FROM orders WHERE id = :wanted;
--- error
-- a parameter in a stream table
--- fixed
SELECT id FROM orders WHERE id = 1;

--- case: a variable
--- covers: Q29 a variable
SELECT id FROM orders WHERE id = ${wanted};
--- error
-- a parameter in a stream table
--- fixed
SELECT id FROM orders WHERE id = 1;

--- case: locking rows
--- covers: Q23 locking rows
SELECT id FROM orders FOR UPDATE;
--- error
-- Spark has no locking clause
--- fixed
SELECT id FROM orders;

--- case: a script
--- covers: Q29 a script
SELECT TRANSFORM(id) USING 'cat' AS (x) FROM orders;
--- error
-- TRANSFORM cannot be maintained

--- case: no table at all
--- covers: Q29 no table at all
SELECT 1 AS one;
--- error
-- the query reads no table

--- case: two common table expressions of one name
--- covers: Q29 two common table expressions of one name
WITH a AS (SELECT id FROM orders), A AS (SELECT id FROM customers) SELECT id FROM a;
--- error
-- two common table expressions are called "A"
--- fixed
WITH a AS (SELECT id FROM orders), b AS (SELECT id FROM customers) SELECT id FROM a;

--- case: SET of no column along a pipe
--- covers: Q29 SET of no column along a pipe
FROM orders |> SET amont = amount + 1;
--- error
-- SET of amont, which is no column
--- fixed
FROM orders |> EXTEND amount + 1 AS amont;

--- case: SET of a column of a table along a pipe
--- covers: Q29 SET of no column along a pipe
FROM orders |> SET orders.amount = 1;
--- error
-- the query cannot be parsed
--- fixed
FROM orders |> SET amount = 1;

--- case: SET of two columns of one name along a pipe
--- covers: Q29 SET of two columns along a pipe
FROM orders AS o |> JOIN customers AS c ON o.customer = c.id |> SET id = 1 |> SELECT region;
--- error
-- SET of id, which is two columns
--- fixed
FROM orders AS o |> JOIN customers AS c ON o.customer = c.id |> EXTEND 1 AS one |> SELECT region;

--- case: SET after a column that does not exist along a pipe
--- covers: Q29 SET of no column along a pipe
FROM orders |> SELECT amont |> SET amont = 1;
--- error
-- column "amont" does not exist
--- fixed
FROM orders |> SELECT amount |> SET amount = 1;

--- case: a number of no column as a key along a pipe
--- covers: Q29 a number of no column as a key along a pipe
FROM orders |> AGGREGATE SUM(amount) AS s GROUP BY 4;
--- error
-- there is no column 4 before AGGREGATE
--- fixed
FROM orders |> AGGREGATE SUM(amount) AS s GROUP BY customer;

--- case: a grouping set as a key along a pipe
--- covers: Q29 grouping sets along a pipe
FROM orders |> AGGREGATE SUM(amount) AS s GROUP BY ROLLUP(customer, id);
--- error
-- the query cannot be parsed
--- fixed
SELECT customer, id, SUM(amount) AS s FROM orders GROUP BY ROLLUP(customer, id);

--- case: WITH CUBE along a pipe
--- covers: Q29 grouping sets along a pipe
FROM orders |> AGGREGATE SUM(amount) AS s GROUP BY customer, id WITH CUBE;
--- error
-- the query cannot be parsed
--- fixed
SELECT customer, id, SUM(amount) AS s FROM orders GROUP BY customer, id WITH CUBE;

--- case: a step that no pipe has
--- covers: Q29 steps that Spark has not along a pipe
FROM orders |> HAVING amount > 1;
--- error
-- the query cannot be parsed
--- fixed
FROM orders |> WHERE amount > 1;

--- case: an order before a pipe
--- covers: Q29 ORDER BY before a pipe
SELECT id FROM orders ORDER BY id |> LIMIT 1;
--- error
-- the query cannot be parsed
--- fixed
SELECT id FROM orders |> ORDER BY id |> LIMIT 1;

--- case: a join after a step of a pipe without a bar
--- covers: Q29 a join of a pipe without a bar
FROM orders AS o |> WHERE o.id > 1 JOIN customers AS c ON c.id = o.customer |> SELECT o.id;
--- error
-- the query cannot be parsed
--- fixed
FROM orders AS o |> WHERE o.id > 1 |> JOIN customers AS c ON c.id = o.customer |> SELECT o.id;

--- case: a column with AS and its table along a pipe
--- covers: Q29 tables of columns that a pipe made
FROM orders AS o |> SELECT id AS k, amount |> WHERE o.k > 1;
--- error
-- column "o.k" does not exist
--- fixed
FROM orders AS o |> SELECT id AS k, amount |> WHERE k > 1;

--- case: the former value of a column that SET changed along a pipe
--- covers: Q29 tables of columns that a pipe made
FROM orders AS o |> SET amount = amount * 10 |> WHERE o.amount > 1;
--- error
-- column "o.amount" does not exist
--- fixed
FROM orders AS o |> SET amount = amount * 10 |> WHERE amount > 1;

--- case: a column of a former name along a pipe
--- covers: Q29 tables of columns that a pipe made
FROM orders AS o |> AS t |> WHERE o.amount > 1;
--- error
-- column "o.amount" does not exist
--- fixed
FROM orders AS o |> AS t |> WHERE t.amount > 1;

--- case: DROP of no column along a pipe
--- covers: Q29 DROP of no column along a pipe
FROM orders |> DROP amont;
--- error
-- column "amont" does not exist
--- fixed
FROM orders |> DROP amount;

--- case: DROP of two columns of one name along a pipe
--- covers: Q29 DROP of no column along a pipe
FROM orders AS o |> JOIN customers AS c ON o.customer = c.id |> DROP id |> SELECT region;
--- error
-- column "id" is ambiguous
--- fixed
FROM orders AS o |> JOIN customers AS c ON o.customer = c.id |> DROP o.id |> SELECT region;

--- case: a column of two tables after a choice along a pipe
--- covers: Q29 names of several tables along a pipe
FROM orders AS o JOIN customers AS c ON o.customer = c.id |> SELECT o.id, c.id |> SELECT id;
--- error
-- column "id" is ambiguous
--- fixed
FROM orders AS o JOIN customers AS c ON o.customer = c.id |> SELECT o.id, c.id |> SELECT o.id;

--- case: a limit apart from its order along a pipe
--- covers: Q29 LIMIT along a pipe, apart from its ORDER BY
FROM orders |> ORDER BY amount |> SELECT id |> LIMIT 1;
--- error
-- LIMIT of rows that an earlier step of a pipe has put into order
--- fixed
FROM orders |> ORDER BY amount |> LIMIT 1 |> SELECT id;

--- case: an output without a name
--- covers: Q29 an output without a name
SELECT id, amount + 1 FROM orders;
--- error
-- output column 2 has no name
--- fixed
SELECT id, amount + 1 AS next FROM orders;

--- case: an output without a name beside a text like one that is given
--- covers: Q29 an output without a name
SELECT amount + 1, '_col_0' AS name FROM orders AS _col_0;
--- error
-- output column 1 has no name
--- fixed
SELECT amount + 1 AS next, '_col_0' AS name FROM orders AS _col_0;

--- case: an output without a name under a star
--- covers: Q29 an output without a name
WITH sums AS (SELECT customer, SUM(amount) FROM orders GROUP BY customer) SELECT * FROM sums;
--- error
-- output column 2 has no name
--- fixed
WITH sums AS (SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer) SELECT * FROM sums;

--- case: an output without a name at the end of a pipe
--- covers: Q29 an output without a name
FROM orders |> AGGREGATE SUM(amount) GROUP BY customer;
--- error
-- output column 2 has no name
--- fixed
FROM orders |> AGGREGATE SUM(amount) AS total GROUP BY customer;

--- case: two outputs of one name
--- covers: Q29 two outputs of one name
SELECT id, amount AS ID FROM orders;
--- error
-- two output columns are called "id"
--- fixed
SELECT id, amount AS paid FROM orders;

--- case: two columns of one name under a star
--- covers: Q29 two columns of one name under a star
SELECT * FROM orders AS o JOIN customers AS c ON o.customer = c.id;
--- error
-- two output columns are called "id"
--- fixed
SELECT o.*, c.* EXCEPT (id) FROM orders AS o JOIN customers AS c ON o.customer = c.id;

--- case: a name that holds state
--- covers: Q29 a name that holds state
SELECT id AS __st_n FROM orders;
--- error
-- an output column is called "__st_n"
--- fixed
SELECT id AS n FROM orders;

--- case: a column that holds state
--- covers: Q29 a column that holds state
SELECT __st_n AS n FROM orders;
--- error
-- column "__st_n" does not exist
--- fixed
SELECT id AS n FROM orders;

--- case: a name that a writer uses
--- covers: Q29 a name that holds state
SELECT id AS __goes FROM orders;
--- error
-- an output column is called "__goes"
--- fixed
SELECT id AS goes FROM orders;

--- case: an output that is NULL in every row
--- covers: Q29 an output that is NULL in every row
SELECT id, NULL AS nothing FROM orders;
--- error
-- the column "nothing" is NULL in every row
--- fixed
SELECT id, CAST(NULL AS INT) AS nothing FROM orders;

--- case: a table that is not there
--- covers: Q29 a table that is not there
SELECT id FROM order;
--- error
-- there is no table "order"
--- fixed
SELECT id FROM orders;

--- case: a column that is not there
--- covers: Q29 a column that is not there
SELECT amont FROM orders;
--- error
-- column "amont" does not exist
--- fixed
SELECT amount FROM orders;

--- case: a column that this table does not have
--- covers: Q29 a column that this table does not have
SELECT o.region FROM orders AS o;
--- error
-- column "o.region" does not exist
--- fixed
SELECT o.amount FROM orders AS o;

--- case: an alias that is not there
--- covers: Q29 an alias that is not there
SELECT c.id FROM orders AS o;
--- error
-- column "c.id" does not exist
--- fixed
SELECT o.id FROM orders AS o;

--- case: an alias that renames some of the columns
--- covers: Q29 an alias that renames some of the columns
SELECT a FROM orders AS o(a, b);
--- error
-- "o" names 2 of 3 columns
--- fixed
SELECT a FROM orders AS o(a, b, c);

--- case: a column of two tables
--- covers: Q29 a column of two tables
SELECT id FROM orders AS o JOIN customers AS c ON o.customer = c.id;
--- error
-- column "id" is ambiguous
--- fixed
SELECT o.id FROM orders AS o JOIN customers AS c ON o.customer = c.id;

--- case: two tables under one alias
--- covers: Q29 two tables under one alias
SELECT o.id FROM orders AS o JOIN customers AS o ON true;
--- error
-- two tables are called "o"
--- fixed
SELECT o.id FROM orders AS o JOIN customers AS c ON true;

--- case: an ordinal beyond the outputs
--- covers: Q29 an ordinal beyond the outputs
SELECT customer FROM orders GROUP BY 2;
--- error
-- there is no output column 2
--- fixed
SELECT customer FROM orders GROUP BY 1;

--- case: a column that is neither grouped nor aggregated
--- covers: Q29 a column that is neither grouped nor aggregated
SELECT customer, amount FROM orders GROUP BY customer;
--- error
-- "amount" is neither in GROUP BY nor inside an aggregate
--- fixed
SELECT customer, amount FROM orders GROUP BY customer, amount;

--- case: HAVING a column that is not grouped
--- covers: Q29 HAVING a column that is not grouped
SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer HAVING amount > 1;
--- error
-- "amount" is neither in GROUP BY nor inside an aggregate
--- fixed
SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer, amount HAVING amount > 1;

--- case: an aggregate in WHERE
--- covers: Q29 an aggregate in WHERE
SELECT id FROM orders WHERE COUNT(*) > 1;
--- error
-- COUNT is not allowed in WHERE
--- fixed
SELECT id FROM orders GROUP BY id HAVING COUNT(*) > 1;

--- case: an aggregate of an aggregate
--- covers: Q29 an aggregate of an aggregate
SELECT SUM(COUNT(*)) AS s FROM orders;
--- error
-- COUNT is not allowed inside SUM
--- fixed
SELECT SUM(n) AS s FROM (SELECT COUNT(*) AS n FROM orders) AS t;

--- case: a union of two widths
--- covers: Q11 a union of two widths
SELECT id, amount FROM orders UNION ALL SELECT id FROM customers;
--- error
-- UNION of 2 columns with 1
--- fixed
SELECT id, amount FROM orders UNION ALL SELECT id, NULL FROM customers;

--- case: not a query
--- covers: Q29 not a query
DELETE FROM orders;
--- error
-- DELETE does not begin a query
--- fixed
SELECT id FROM orders;

--- case: two queries
--- covers: Q29 two queries
SELECT id FROM orders; SELECT id FROM customers;
--- error
-- the text contains 2 statements
--- fixed
SELECT id FROM orders;

--- case: broken SQL
--- covers: Q29 broken SQL
SELECT id FROM orders WHERE;
--- error
-- the query cannot be parsed
--- fixed
SELECT id FROM orders WHERE id = 1;

--- case: a string that does not end
--- covers: Q29 a string that does not end
SELECT 'abc FROM orders;
--- error
-- the query cannot be parsed
--- fixed
SELECT 'abc' AS a FROM orders;

--- case: row numbers in no order
--- covers: Q19 row numbers in no order
SELECT id, row_number() OVER (PARTITION BY customer) AS r FROM orders;
--- error
-- ROW_NUMBER over unordered rows
--- fixed
SELECT id, row_number() OVER (PARTITION BY customer ORDER BY id) AS r FROM orders;

--- case: a list over peers
--- covers: Q19 a list over peers
SELECT id, collect_list(amount) OVER (ORDER BY customer) AS r FROM orders;
--- error
-- COLLECT_LIST over a RANGE frame
--- fixed
SELECT id, collect_list(amount) OVER (ORDER BY customer ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS r FROM orders;

--- case: INTERSECT of two widths
--- covers: Q11 INTERSECT of two widths
SELECT id, amount FROM orders INTERSECT SELECT id FROM customers;
--- error
-- INTERSECT of 2 columns with 1
--- fixed
SELECT id FROM orders INTERSECT SELECT id FROM customers;

--- case: GROUPING without grouping sets
--- covers: Q9 GROUPING without grouping sets
SELECT customer, grouping(customer) AS x FROM orders GROUP BY customer;
--- error
-- GROUPING without grouping sets
--- fixed
SELECT customer FROM orders GROUP BY customer;

--- case: a star without a field that is not there
--- covers: Q29 a star EXCEPT what it has not
SELECT * EXCEPT (place.z) FROM visits;
--- error
-- a star EXCEPT the field z, which does not exist
--- fixed
SELECT id, happened, tags, named_struct('y', place.y) AS place FROM visits;

--- case: a star without all fields of a struct
--- covers: Q29 a star EXCEPT what it has not
SELECT * EXCEPT (place.x, place.y) FROM visits;
--- error
-- a star EXCEPT all fields of a struct
--- fixed
SELECT * EXCEPT (place) FROM visits;

--- case: a star without a column that is not there
--- covers: Q29 a star EXCEPT what it has not
SELECT * EXCEPT (amont) FROM orders;
--- error
-- column "amont" does not exist
--- fixed
SELECT * EXCEPT (amount) FROM orders;

--- case: a star without a column that two tables have
--- covers: Q29 a star EXCEPT what it has not
SELECT * EXCEPT (id) FROM orders AS o JOIN customers AS c ON o.customer = c.id;
--- error
-- column "id" is ambiguous
--- fixed
SELECT * EXCEPT (c.id) FROM orders AS o JOIN customers AS c ON o.customer = c.id;

--- case: a pivot by FIRST without a name
--- covers: Q31 an aggregate of PIVOT without a name
SELECT * FROM orders PIVOT (FIRST(amount), SUM(amount) AS s FOR customer IN (1));
--- error
-- one of several aggregates of PIVOT has no name
--- fixed
SELECT * FROM orders PIVOT (FIRST(amount) AS f, SUM(amount) AS s FOR customer IN (1));

--- case: GROUPING of what is no key
--- covers: Q9 GROUPING of what is no key
SELECT customer, grouping(id) AS x FROM orders GROUP BY ROLLUP (customer);
--- error
-- GROUPING of an expression that is not in GROUP BY
--- fixed
SELECT customer, grouping(customer) AS x FROM orders GROUP BY ROLLUP (customer);

--- case: a column of a key that is an expression
--- covers: Q4 a column of a key that is an expression
SELECT customer FROM orders GROUP BY customer + 1;
--- error
-- "customer" is neither in GROUP BY nor inside an aggregate
--- fixed
SELECT MAX(customer) AS customer FROM orders GROUP BY customer + 1;

--- case: ALL beside another key, where no column is called so
--- covers: Q4 ALL beside another key
SELECT customer, COUNT(*) AS n FROM orders GROUP BY ALL, customer;
--- error
-- column "all" does not exist
--- fixed
SELECT customer, COUNT(*) AS n FROM orders GROUP BY ALL;

--- case: groups by a variant
--- covers: Q28 GROUP BY of a VARIANT
SELECT COUNT(*) AS n FROM orders GROUP BY to_variant_object(map('a', amount));
--- error
-- a compared value holds a VARIANT
--- fixed
SELECT COUNT(*) AS n FROM orders GROUP BY to_json(to_variant_object(map('a', amount)));

--- case: groups by a variant in ROLLUP
--- covers: Q28 GROUP BY of a VARIANT
SELECT COUNT(*) AS n FROM orders GROUP BY ROLLUP (to_variant_object(map('a', amount)));
--- error
-- a compared value holds a VARIANT
--- fixed
SELECT COUNT(*) AS n FROM orders GROUP BY ROLLUP (to_json(to_variant_object(map('a', amount))));

--- case: a variant under DISTINCT
--- covers: Q28 a variant under DISTINCT
SELECT DISTINCT parse_json(region) AS x FROM customers;
--- error
-- "x" holds a VARIANT
--- fixed
SELECT DISTINCT to_json(parse_json(region)) AS x FROM customers;

--- case: a variant under UNION
--- covers: Q28 a variant under UNION
SELECT parse_json(region) AS x FROM customers UNION SELECT parse_json(name) FROM regions;
--- error
-- "x" holds a VARIANT
--- fixed
SELECT to_json(parse_json(region)) AS x FROM customers UNION SELECT to_json(parse_json(name)) FROM regions;

--- case: a variant under EXCEPT ALL
--- covers: Q28 a variant under EXCEPT ALL
SELECT parse_json(region) AS x FROM customers EXCEPT ALL SELECT parse_json(name) FROM regions;
--- error
-- "x" holds a VARIANT
--- fixed
SELECT to_json(parse_json(region)) AS x FROM customers EXCEPT ALL SELECT to_json(parse_json(name)) FROM regions;

--- case: a window by a variant
--- covers: Q28 a window by a VARIANT
SELECT id, COUNT(*) OVER (PARTITION BY v) AS n FROM (SELECT id, parse_json(region) AS v FROM customers) AS t;
--- error
-- "v" holds a VARIANT
--- fixed
SELECT id, COUNT(*) OVER (PARTITION BY v) AS n FROM (SELECT id, to_json(parse_json(region)) AS v FROM customers) AS t;

--- case: an order by a variant
--- covers: Q28 ORDER BY of a VARIANT
SELECT id, rank() OVER (w) AS n FROM (SELECT id, parse_json(region) AS v FROM customers) AS t WINDOW w AS (ORDER BY v);
--- error
-- "v" holds a VARIANT
--- fixed
SELECT id, rank() OVER (w) AS n FROM (SELECT id, to_json(parse_json(region)) AS v FROM customers) AS t WINDOW w AS (ORDER BY v);

--- case: distinct variants, counted
--- covers: Q28 COUNT(DISTINCT) of a VARIANT
SELECT COUNT(DISTINCT parse_json(region)) AS n FROM customers;
--- error
-- COUNT(DISTINCT …) of a VARIANT
--- fixed
SELECT COUNT(DISTINCT to_json(parse_json(region))) AS n FROM customers;

--- case: the least variant
--- covers: Q28 MIN of a VARIANT
SELECT MIN(parse_json(region)) AS n FROM customers;
--- error
-- MIN of a VARIANT
--- fixed
SELECT MIN(to_json(parse_json(region))) AS n FROM customers;

--- case: the row of the largest variant
--- covers: Q28 MAX_BY by a VARIANT
SELECT max_by(id, parse_json(region)) AS n FROM customers;
--- error
-- MAX_BY of a VARIANT
--- fixed
SELECT max_by(id, to_json(parse_json(region))) AS n FROM customers;

--- case: a list of the variants of a group
--- covers: Q28 COLLECT_LIST of a VARIANT
SELECT collect_list(parse_json(region)) AS l FROM customers;
--- error
-- COLLECT_LIST of a VARIANT
--- fixed
SELECT collect_list(to_json(parse_json(region))) AS l FROM customers;

--- case: a map under DISTINCT
--- covers: Q28 a map under DISTINCT
SELECT DISTINCT map('a', amount) AS x FROM orders;
--- error
-- DISTINCT over a MAP
--- fixed
SELECT DISTINCT array_sort(map_entries(map('a', amount))) AS x FROM orders;

--- case: groups by a map of numbers
--- covers: Q28 groups by a map of numbers, dates or times
SELECT COUNT(*) AS n FROM orders GROUP BY map('a', amount);
--- error
-- GROUP BY of a MAP with values of type INT
--- fixed
SELECT map_from_entries(sort_array(map_entries(map('a', amount)))) AS m, COUNT(*) AS n FROM orders GROUP BY sort_array(map_entries(map('a', amount)));

--- case: maps of both sides of UNION
--- covers: Q28 a map under UNION and EXCEPT
SELECT map('a', amount) AS x FROM orders UNION SELECT map('a', id) AS x FROM customers;
--- error
-- UNION over a MAP
--- fixed
SELECT array_sort(map_entries(map('a', amount))) AS x FROM orders UNION SELECT array_sort(map_entries(map('a', id))) AS x FROM customers;

--- case: HAVING without groups over a column
--- covers: Q29 HAVING without groups over a column
SELECT id FROM orders HAVING amount > 1;
--- error
-- "id" is neither in GROUP BY nor inside an aggregate
--- fixed
SELECT id FROM orders WHERE amount > 1;

--- case: an ASOF join
--- covers: Q2 an ASOF join
SELECT o.id FROM orders AS o ASOF JOIN customers AS c ON o.customer >= c.id;
--- error
-- Spark has no ASOF JOIN
--- fixed
SELECT o.id, l.id AS latest FROM orders AS o, LATERAL (SELECT c.id FROM customers AS c WHERE o.customer >= c.id ORDER BY c.id DESC LIMIT 1) AS l;

--- case: who asked for the catalog
--- covers: Q24 who asked for the catalog
SELECT id, current_catalog() AS r FROM orders;
--- error
-- current_catalog() cannot be maintained
--- fixed
SELECT id, 'spark_catalog' AS r FROM orders;

--- case: a random choice inside a LATERAL subquery
--- covers: Q24 a random choice inside a LATERAL subquery
SELECT c.id FROM customers AS c, LATERAL (SELECT o.id FROM orders AS o WHERE o.customer = c.id AND rand() < 0.5) AS t;
--- error
-- rand() cannot be maintained

--- case: UNION BY NAME
--- covers: Q29 UNION BY NAME
SELECT id FROM orders UNION ALL BY NAME SELECT id FROM customers;
--- error
-- a set operation BY NAME
--- fixed
SELECT id FROM orders UNION ALL SELECT id FROM customers;

--- case: a recursion that counts its own rows
--- covers: Q18 a recursion that counts its own rows
WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION ALL SELECT COUNT(*) FROM r WHERE n < 5) SELECT n FROM r;
--- error
-- Spark reads no recursion in an aggregate
--- fixed
WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT COUNT(*) AS n FROM r;

--- case: a recursion that numbers its own rows
--- covers: Q18 a recursion that numbers its own rows
WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION ALL SELECT n + 1 FROM (SELECT n, ROW_NUMBER() OVER (ORDER BY n) AS k FROM r) AS s WHERE k = 1 AND n < 5) SELECT n FROM r;
--- error
-- Spark reads no recursion in a window function
--- fixed
WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n, ROW_NUMBER() OVER (ORDER BY n) AS k FROM r;

--- case: a recursion that takes its own first rows
--- covers: Q18 a recursion that takes its own first rows
WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION ALL SELECT n + 1 FROM (SELECT n FROM r ORDER BY n LIMIT 1) AS s WHERE n < 5) SELECT n FROM r;
--- error
-- Spark reads no recursion under ORDER BY
--- fixed
WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r ORDER BY n LIMIT 1;

--- case: a recursion on the right of a left join
--- covers: Q18 a recursion on the right of a left join
WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION ALL SELECT o.id + 1 FROM orders AS o LEFT JOIN r ON o.id = r.n WHERE r.n < 5) SELECT n FROM r;
--- error
-- Spark reads no recursion on the right side of a LEFT JOIN
--- fixed
WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT o.id, r.n FROM orders AS o LEFT JOIN r ON o.id = r.n;

--- case: a recursion on the right of a semi join
--- covers: Q18 a recursion on the right of a semi join
WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION ALL SELECT o.id + 1 FROM orders AS o LEFT SEMI JOIN r ON o.id = r.n) SELECT n FROM r;
--- error
-- Spark reads no recursion on the right side of a SEMI JOIN
--- fixed
WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT o.id FROM orders AS o LEFT SEMI JOIN r ON o.id = r.n;

--- case: a recursion on the left of a right join
--- covers: Q18 a recursion on the left of a right join
WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION ALL SELECT o.id + 1 FROM r RIGHT JOIN orders AS o ON o.id = r.n WHERE r.n < 5) SELECT n FROM r;
--- error
-- Spark reads no recursion on the left side of a RIGHT JOIN
--- fixed
WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT o.id, r.n FROM r RIGHT JOIN orders AS o ON o.id = r.n;

--- case: a recursion in a full join
--- covers: Q18 a recursion in a full join
WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION ALL SELECT o.id + 1 FROM r FULL JOIN orders AS o ON o.id = r.n WHERE r.n < 5) SELECT n FROM r;
--- error
-- Spark reads no recursion in a FULL JOIN
--- fixed
WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT o.id, r.n FROM r FULL JOIN orders AS o ON o.id = r.n;

--- case: a recursion that is counted for each row
--- covers: Q18 a recursion that is counted for each row
WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION ALL SELECT o.id + 1 FROM orders AS o WHERE (SELECT COUNT(*) FROM r WHERE r.n = o.customer) > 1) SELECT n FROM r;
--- error
-- Spark reads no recursion in an aggregate
--- fixed
WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT o.id FROM orders AS o WHERE (SELECT COUNT(*) FROM r WHERE r.n = o.customer) > 1;

--- case: a recursion by UNION in each round of another
--- covers: Q18 a recursion by UNION in each round of another
WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION ALL SELECT k FROM (WITH RECURSIVE s(k) AS (SELECT n FROM r WHERE n < 3 UNION SELECT k + 1 FROM s WHERE k < 5) SELECT k FROM s) AS t) SELECT n FROM r;
--- error
-- a recursion by UNION over the rows of another one's round
--- fixed
WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION ALL SELECT k FROM (WITH RECURSIVE s(k) AS (SELECT n FROM r WHERE n < 3 UNION ALL SELECT k + 1 FROM s WHERE k < 5) SELECT k FROM s) AS t) SELECT n FROM r;

--- case: a recursion by UNION that is joined to itself
--- covers: Q18 a recursion by UNION that is joined to itself
WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION SELECT a.n + b.n FROM r AS a JOIN r AS b ON a.n = b.n WHERE a.n < 5) SELECT n FROM r;
--- error
-- a recursion by UNION whose step combines its own rows
--- fixed
WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION ALL SELECT a.n + b.n FROM r AS a JOIN r AS b ON a.n = b.n WHERE a.n < 5) SELECT n FROM r;

--- case: the first rows of a recursion, inside of it
--- covers: Q18 LIMIT in a recursion
WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION SELECT n + 1 FROM r WHERE n < 5 ORDER BY 1 LIMIT 3) SELECT n FROM r;
--- error
-- Spark has no LIMIT in a recursion
--- fixed
WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r ORDER BY 1 LIMIT 3;

--- case: some rows of a recursion
--- covers: Q18 LIMIT over a recursion
WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION ALL SELECT n + 1 FROM r) SELECT n FROM r LIMIT 5;
--- error
-- LIMIT without ORDER BY over a recursion
--- fixed
WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r ORDER BY n LIMIT 5;

--- case: all columns of a table function in parentheses that are matched by names
--- covers: Q2 t.* of a table function in parentheses that match columns by name
SELECT t.* FROM orders AS o LEFT JOIN (customers AS c JOIN inline(from_json('[]', 'array<struct<a: int>>')) AS t) USING (id);
--- error
-- a join by column names, one side of which has unknown columns
--- fixed
SELECT t.* FROM orders AS o LEFT JOIN (customers AS c JOIN inline(from_json('[]', 'array<struct<a: int>>')) AS t(a)) USING (id);

--- case: a column of two tables in parentheses that are matched by names
--- covers: Q2 a column of two tables in parentheses that are matched by names
SELECT o.id, region FROM orders AS o LEFT JOIN (customers AS c JOIN customers AS d ON c.id = d.id) USING (id);
--- error
-- column "region" is ambiguous
--- fixed
SELECT o.id, c.region FROM orders AS o LEFT JOIN (customers AS c JOIN customers AS d ON c.id = d.id) USING (id);

--- case: a subquery that mentions the row around the one it stands in
--- covers: Q29 a subquery that mentions the row around the one it stands in
SELECT id FROM orders AS o WHERE EXISTS (SELECT 1 FROM customers AS c WHERE c.id = o.customer AND c.id IN (SELECT x.customer FROM orders AS x WHERE x.amount = o.amount));
--- error
-- a subquery that refers to a column of a query further out
--- fixed
SELECT id FROM orders AS o WHERE EXISTS (SELECT 1 FROM customers AS c JOIN orders AS x ON c.id = x.customer WHERE c.id = o.customer AND x.amount = o.amount);

--- case: a recursion by UNION and by UNION ALL
--- covers: Q18 a recursion by UNION and by UNION ALL
WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION SELECT n + 1 FROM r WHERE n < 5 UNION ALL SELECT n + 2 FROM r WHERE n < 3) SELECT n FROM r;
--- error
-- a recursion by UNION and UNION ALL is not maintained
--- fixed
WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION SELECT n + 1 FROM r WHERE n < 5 UNION SELECT n + 2 FROM r WHERE n < 3) SELECT n FROM r;

--- case: a member of rows of two columns
--- covers: Q13 a member of rows of two columns
SELECT id FROM orders WHERE customer IN (SELECT id, region FROM customers);
--- error
-- IN: 2 columns instead of 1
--- fixed
SELECT id FROM orders WHERE customer IN (SELECT id FROM customers);

--- case: an aggregate in FILTER
--- covers: Q20 an aggregate in FILTER
SELECT customer, SUM(customer) FILTER (WHERE COUNT(*) > 1) OVER () AS several FROM orders GROUP BY customer;
--- error
-- COUNT is not allowed in FILTER
--- fixed
SELECT customer, SUM(CASE WHEN COUNT(*) > 1 THEN customer END) OVER () AS several FROM orders GROUP BY customer;

--- case: a window in WHERE
--- covers: Q20 a window in WHERE
SELECT id FROM orders WHERE ROW_NUMBER() OVER (ORDER BY id) = 1;
--- error
-- a window function is not allowed in WHERE
--- fixed
SELECT id FROM orders QUALIFY ROW_NUMBER() OVER (ORDER BY id) = 1;

--- case: a window inside a window
--- covers: Q20 a window inside a window
SELECT id, SUM(COUNT(*) OVER ()) OVER () AS x FROM orders GROUP BY id;
--- error
-- a window function is not allowed inside another
--- fixed
SELECT id, SUM(n) OVER () AS x FROM (SELECT id, COUNT(*) OVER () AS n FROM orders GROUP BY id) AS t;

--- case: a window without a definition
--- covers: Q19 a window without a definition
SELECT id, SUM(amount) OVER w AS s FROM orders;
--- error
-- there is no window "w"
--- fixed
SELECT id, SUM(amount) OVER w AS s FROM orders WINDOW w AS (ORDER BY id);

--- case: SIMILAR TO
--- covers: Q1 SIMILAR TO
SELECT region SIMILAR TO 'a' AS x FROM customers;
--- error
-- Spark has no SIMILAR TO
--- fixed
SELECT region RLIKE 'a' AS x FROM customers;

--- case: a table function over a table beside it, without LATERAL
--- covers: Q29 a table function over a table beside it, without LATERAL
SELECT v.id, e.x FROM visits AS v, explode(v.tags) AS e(x);
--- error
-- a table function over columns of another table in FROM, without LATERAL
--- fixed
SELECT v.id, e.x FROM visits AS v, LATERAL explode(v.tags) AS e(x);

--- case: a RIGHT JOIN with a derived table that mentions the row around
--- covers: Q29 outer joins beside a derived table that mentions the row around
SELECT c.id, (SELECT COUNT(*) FROM (SELECT d.id FROM customers AS d WHERE d.region = c.region) AS q RIGHT JOIN orders AS o ON o.id = q.id) AS n FROM customers AS c;
--- error
-- this join in a FROM that refers to an outer row
--- fixed
SELECT c.id, c.region, COUNT(*) AS n FROM customers AS c CROSS JOIN orders AS o LEFT JOIN customers AS q ON o.id = q.id AND q.region = c.region GROUP BY c.id, c.region;

--- case: a LEFT JOIN with a derived table that mentions the row around
--- covers: Q29 outer joins beside a derived table that mentions the row around
SELECT c.id, (SELECT COUNT(q.id) FROM orders AS o LEFT JOIN (SELECT d.id FROM customers AS d WHERE d.region = c.region) AS q ON o.id = q.id) AS n FROM customers AS c;
--- error
-- this join in a FROM that refers to an outer row
--- fixed
SELECT c.id, c.region, COUNT(q.id) AS n FROM customers AS c CROSS JOIN orders AS o LEFT JOIN customers AS q ON o.id = q.id AND q.region = c.region GROUP BY c.id, c.region;

--- case: a FULL JOIN whose condition mentions the row around
--- covers: Q29 outer joins beside a derived table that mentions the row around
SELECT c.id, (SELECT COUNT(*) FROM regions AS r FULL JOIN orders AS o ON o.id = c.id) AS n FROM customers AS c;
--- error
-- this join in a FROM that refers to an outer row
--- fixed
SELECT c.id, COUNT(*) AS n FROM customers AS c LEFT JOIN orders AS o ON o.id = c.id GROUP BY c.id;

--- case: a SEMI JOIN with a derived table that mentions the row around
--- covers: Q29 outer joins beside a derived table that mentions the row around
SELECT c.id, (SELECT COUNT(*) FROM orders AS o SEMI JOIN (SELECT r.name FROM regions AS r WHERE r.name = c.region) AS q ON true) AS n FROM customers AS c;
--- error
-- this join in a FROM that refers to an outer row
--- fixed
SELECT c.id, c.region, COUNT(*) AS n FROM customers AS c JOIN regions AS r ON r.name = c.region JOIN orders AS o GROUP BY c.id, c.region;

--- case: VALUES with a column of the query around
--- covers: Q12 VALUES with a column of the query around
SELECT c.id, (SELECT MAX(q.v) FROM VALUES (c.id), (3) AS q(v)) AS n FROM customers AS c;
--- error
-- VALUES with a column of an outer query
--- fixed
SELECT c.id, (SELECT MAX(q.v) FROM explode(array(c.id, 3)) AS q(v)) AS n FROM customers AS c;

--- case: VALUES with a column of the query around, beside a table
--- covers: Q12 VALUES with a column of the query around
SELECT c.id, (SELECT MAX(q.v) FROM (VALUES (c.id), (3)) AS q(v) JOIN orders AS o ON o.id = q.v) AS n FROM customers AS c;
--- error
-- VALUES with a column of an outer query
--- fixed
SELECT c.id, (SELECT MAX(q.v) FROM explode(array(c.id, 3)) AS q(v) JOIN orders AS o ON o.id = q.v) AS n FROM customers AS c;

--- case: a subquery in ON of a LEFT JOIN with a table function
--- covers: Q16 a subquery in ON of a LEFT JOIN with a table function
SELECT v.id, t.tag FROM visits AS v LEFT JOIN LATERAL explode(v.tags) AS t(tag) ON t.tag IN (SELECT id FROM orders);
--- error
-- a subquery in ON of a LEFT JOIN with a table function
--- fixed
SELECT v.id, e.tag FROM visits AS v LEFT JOIN (SELECT w.id, t.tag FROM visits AS w, LATERAL explode(w.tags) AS t(tag) JOIN orders AS o ON t.tag = o.id) AS e ON v.id = e.id;

--- case: LATERAL over columns of the query around
--- covers: Q15 LATERAL over columns of the query around
SELECT v.id, (SELECT COUNT(*) FROM orders AS o JOIN LATERAL explode(v.tags) AS e(x) ON o.id = e.x) AS n FROM visits AS v;
--- error
-- LATERAL over columns of an outer query
--- fixed
SELECT v.id, (SELECT COUNT(*) FROM explode(v.tags) AS e(x) JOIN orders AS o ON o.id = e.x) AS n FROM visits AS v;

--- case: LATERAL VIEW over columns of the query around
--- covers: Q15 LATERAL over columns of the query around
SELECT v.id, (SELECT SUM(x) FROM (SELECT 1 AS one) AS o LATERAL VIEW explode(v.tags) e AS x) AS n FROM visits AS v;
--- error
-- LATERAL over columns of an outer query
--- fixed
SELECT v.id, (SELECT SUM(x) FROM explode(v.tags) AS e(x)) AS n FROM visits AS v;

--- case: an interval as a column
--- covers: Q28 an interval as a column
SELECT id, INTERVAL 3 DAYS AS length FROM visits;
--- error
-- the column "length" holds an INTERVAL
--- fixed
SELECT id, CAST(INTERVAL 3 DAYS AS STRING) AS length FROM visits;

--- case: the time between two moments
--- covers: Q28 an interval as a column
SELECT id, TIMESTAMP '2024-01-01 00:00:00' - happened AS age FROM visits;
--- error
-- the column "age" holds an INTERVAL
--- fixed
SELECT id, unix_seconds(TIMESTAMP '2024-01-01 00:00:00') - unix_seconds(happened) AS age FROM visits;

--- case: the days between two dates, deep inside
--- covers: Q28 an interval as a column
SELECT product, MAX(STRUCT(x.days)) AS longest FROM (SELECT product, sold - DATE '2024-01-01' AS days FROM sales) AS x GROUP BY product;
--- error
-- the column "longest" holds an INTERVAL
--- fixed
SELECT product, MAX(STRUCT(x.days)) AS longest FROM (SELECT product, datediff(sold, DATE '2024-01-01') AS days FROM sales) AS x GROUP BY product;

--- case: an interval that is made
--- covers: Q28 an interval as a column
SELECT id, make_interval(0, 0, 0, amount) AS length FROM orders;
--- error
-- the column "length" holds an INTERVAL
--- fixed
SELECT id, CAST(make_interval(0, 0, 0, amount) AS STRING) AS length FROM orders;

--- case: an interval of days that is made, doubled
--- covers: Q28 an interval as a column
SELECT id, make_dt_interval(amount) + make_dt_interval(amount) AS length FROM orders;
--- error
-- the column "length" holds an INTERVAL
--- fixed
SELECT id, CAST(make_dt_interval(amount) + make_dt_interval(amount) AS STRING) AS length FROM orders;

--- case: a frame of GROUPS
--- covers: Q19 a frame of GROUPS
SELECT id, SUM(amount) OVER (ORDER BY id GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM orders;
--- error
-- Spark has no GROUPS in a window
--- fixed
SELECT id, SUM(amount) OVER (ORDER BY g RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM (SELECT id, amount, DENSE_RANK() OVER (ORDER BY id) AS g FROM orders) AS t;

--- case: a frame without its own row
--- covers: Q19 a frame with EXCLUDE
SELECT id, SUM(amount) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) AS s FROM orders;
--- error
-- Spark has no EXCLUDE in a window
--- fixed
SELECT id, SUM(amount) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) - amount AS s FROM orders;

--- case: a named window with a frame
--- covers: Q19 a named window that is refined
SELECT id, SUM(amount) OVER (w ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM orders WINDOW w AS (ORDER BY id);
--- error
-- a window that adds to the window "w"
--- fixed
SELECT id, SUM(amount) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM orders;

--- case: a window that is another one, ordered
--- covers: Q19 a named window that is refined
SELECT id, SUM(amount) OVER v AS s FROM orders WINDOW w AS (PARTITION BY customer), v AS (w ORDER BY id);
--- error
-- a window that adds to the window "w"
--- fixed
SELECT id, SUM(amount) OVER v AS s FROM orders WINDOW v AS (PARTITION BY customer ORDER BY id);

--- case: a window by the name of one that is not there
--- covers: Q19 a window without a definition
SELECT id, SUM(amount) OVER v AS s FROM orders WINDOW v AS w;
--- error
-- there is no window "w"
--- fixed
SELECT id, SUM(amount) OVER v AS s FROM orders WINDOW w AS (ORDER BY id), v AS w;

--- case: an ordered list
--- covers: Q8 ORDER BY in a list
SELECT customer, array_agg(amount ORDER BY id) AS x FROM orders GROUP BY customer;
--- error
-- Spark has no ORDER BY in ARRAY_AGG
--- fixed
SELECT customer, TRANSFORM(SORT_ARRAY(COLLECT_LIST(STRUCT(id, amount))), e -> e.amount) AS x FROM orders GROUP BY customer;

--- case: a list of a few
--- covers: Q8 LIMIT in a list
SELECT customer, collect_list(amount LIMIT 3) AS x FROM orders GROUP BY customer;
--- error
-- Spark has no LIMIT in COLLECT_LIST
--- fixed
SELECT customer, SLICE(SORT_ARRAY(COLLECT_LIST(amount)), 1, 3) AS x FROM orders GROUP BY customer;

--- case: a slice from a constant to a column
--- covers: Q28 a slice of an array
SELECT id, array(10, 20, 30)[1:amount] AS x FROM orders;
--- error
-- the query cannot be parsed
--- fixed
SELECT id, SLICE(array(10, 20, 30), 2, amount - 1) AS x FROM orders;

--- case: an ordered string
--- covers: Q8 ORDER BY in a list
SELECT name, string_agg(country, ',' ORDER BY country) AS x FROM regions GROUP BY name;
--- error
-- Spark has no ORDER BY in STRING_AGG
--- fixed
SELECT name, STRING_AGG(country, ',') WITHIN GROUP (ORDER BY country) AS x FROM regions GROUP BY name;

--- case: a list WITHIN GROUP
--- covers: Q8 WITHIN GROUP of a list
SELECT customer, array_agg(amount) WITHIN GROUP (ORDER BY id) AS x FROM orders GROUP BY customer;
--- error
-- Spark has no WITHIN GROUP in ARRAY_AGG
--- fixed
SELECT customer, TRANSFORM(SORT_ARRAY(COLLECT_LIST(STRUCT(id, amount))), e -> e.amount) AS x FROM orders GROUP BY customer;

--- case: a LATERAL VIEW of a variant
--- covers: Q16 a LATERAL VIEW of a variant
SELECT id, pos FROM customers LATERAL VIEW variant_explode(parse_json(region)) t AS pos, key, value;
--- error
-- Spark has no LATERAL VIEW of variant_explode
--- fixed
SELECT id, v.pos FROM customers, LATERAL variant_explode(parse_json(region)) AS v(pos, key, value);

--- case: ranks in no order
--- covers: Q19 row numbers in no order
SELECT id, rank() OVER (PARTITION BY customer) AS r FROM orders;
--- error
-- RANK over unordered rows
--- fixed
SELECT id, rank() OVER (PARTITION BY customer ORDER BY id) AS r FROM orders;

--- case: a column that Spark names by its text
--- covers: Q29 an output without a name
SELECT count(*) FROM orders;
--- error
-- output column 1 has no name
--- fixed
SELECT count(*) AS n FROM orders;

--- case: a field of a struct, cast
--- covers: Q29 an output without a name
SELECT CAST(place.x AS BIGINT) FROM visits;
--- error
-- output column 1 has no name
--- fixed
SELECT CAST(place.x AS BIGINT) AS x FROM visits;

--- case: two time windows
--- covers: Q30 two time windows in one SELECT
SELECT window(sold, '1 day') AS a, window(sold, '1 hour') AS b FROM sales;
--- error
-- two different time windows in one SELECT
--- fixed
SELECT a, window(sold, '1 hour') AS b FROM (SELECT sold, window(sold, '1 day') AS a FROM sales) AS t;

--- case: a window of a month
--- covers: Q30 a window of a month
SELECT window(sold, '1 month') AS w FROM sales;
--- error
-- '1 month' is not a valid length of a time window
--- fixed
SELECT window(sold, '30 days') AS w FROM sales;

--- case: a window that slides by more than its length
--- covers: Q30 a window that slides by more than its length
SELECT window(sold, '1 day', '2 days') AS w FROM sales;
--- error
-- a time window with lengths that do not fit
--- fixed
SELECT window(sold, '2 days', '1 day') AS w FROM sales;

--- case: sessions in grouping sets
--- covers: Q30 session_window() in grouping sets
SELECT product, session_window.start AS s, COUNT(*) AS n FROM sales GROUP BY CUBE (product, session_window(sold, '1 day'));
--- error
-- session_window() in grouping sets
--- fixed
SELECT product, NULL AS s, COUNT(*) AS n FROM sales GROUP BY product UNION ALL SELECT NULL, session_window.start, COUNT(*) FROM sales GROUP BY session_window(sold, '1 day');

--- case: a window of five arguments
--- covers: Q30 a window of five arguments
SELECT window(sold, '1 day', '1 day', '1 hour', '1 hour') AS w FROM sales;
--- error
-- window() with 5 arguments
--- fixed
SELECT window(sold, '1 day', '1 day', '1 hour') AS w FROM sales;

--- case: sessions without a gap
--- covers: Q30 a session without a gap
SELECT session_window(sold) AS w FROM sales;
--- error
-- session_window() with 1 arguments
--- fixed
SELECT session_window(sold, '5 minutes') AS w FROM sales;

--- case: a table function over groups that HAVING chooses
--- covers: Q16 a table function over groups, beside HAVING
SELECT explode(collect_list(id)) AS e FROM orders GROUP BY customer HAVING customer > 1;
--- error
-- HAVING with a table function over groups
--- fixed
SELECT explode(ids) AS e FROM (SELECT collect_list(id) AS ids FROM orders GROUP BY customer HAVING customer > 1) AS t;

--- case: a table function over groups that QUALIFY chooses by what is no output
--- covers: Q16 a table function over groups, beside QUALIFY over what is no output
SELECT explode(collect_list(id)) AS e FROM orders GROUP BY customer QUALIFY RANK() OVER (ORDER BY customer) = 1;
--- error
-- a table function over groups, with QUALIFY or ORDER BY over no output column
--- fixed
SELECT explode(ids) AS e FROM (SELECT collect_list(id) AS ids FROM orders GROUP BY customer QUALIFY RANK() OVER (ORDER BY customer) = 1) AS t;

--- case: a pivot of two aggregates, one without a name
--- covers: Q31 an aggregate of PIVOT without a name
SELECT * FROM orders PIVOT (SUM(amount) AS s, SUM(amount + 1) FOR customer IN (1));
--- error
-- one of several aggregates of PIVOT has no name
--- fixed
SELECT * FROM orders PIVOT (SUM(amount) AS s, SUM(amount + 1) AS t FOR customer IN (1));

--- case: a pivot by an expression without a name
--- covers: Q31 a value of PIVOT without a name
SELECT * FROM orders PIVOT (SUM(amount) FOR (customer, id) IN ((1, 1 + 1)));
--- error
-- a value of PIVOT has no name
--- fixed
SELECT * FROM orders PIVOT (SUM(amount) FOR (customer, id) IN ((1, 1 + 1) AS a));

--- case: a pivot of pairs by a triple
--- covers: Q31 values of PIVOT of another number than its columns
SELECT * FROM orders PIVOT (SUM(amount) FOR (customer, id) IN ((1, 1, 1) AS a));
--- error
-- a value of PIVOT of 3 columns for 2
--- fixed
SELECT * FROM orders PIVOT (SUM(amount) FOR (customer, id) IN ((1, 1) AS a));

--- case: a pivot whose COUNT stands beside an extremum
--- covers: Q31 aggregates of PIVOT that differ over no rows
SELECT * FROM orders PIVOT (COUNT(*) AS n, MAX_BY(amount, id) AS m FOR customer IN (1));
--- error
-- PIVOT by aggregates that differ over no rows
--- fixed
SELECT id, MAX(CASE WHEN customer = 1 THEN amount END) AS m FROM orders GROUP BY id;

--- case: a limit after a new name for rows in order along a pipe
--- covers: Q29 LIMIT along a pipe, apart from its ORDER BY
FROM orders |> ORDER BY amount |> AS o |> LIMIT 1;
--- error
-- LIMIT of rows that an earlier step of a pipe has put into order
--- fixed
FROM orders |> ORDER BY amount |> LIMIT 1 |> AS o;

--- case: a recursion that refers to an outer row
--- covers: Q18 a recursion that refers to an outer row
SELECT c.id FROM customers AS c WHERE c.id IN (WITH RECURSIVE r(n) AS (SELECT c.id AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r);
--- error
-- a recursion that refers to an outer row
--- fixed
WITH RECURSIVE r(id, n) AS (SELECT c.id, c.id AS n FROM customers AS c UNION ALL SELECT id, n + 1 FROM r WHERE n < 5) SELECT c.id FROM customers AS c WHERE EXISTS (SELECT 1 FROM r WHERE r.id = c.id AND r.n = c.id);

--- case: levels of no recursion
--- covers: Q29 MAX RECURSION LEVEL of nothing
SELECT id FROM orders MAX RECURSION LEVEL 9;
--- error
-- the query cannot be parsed
--- fixed
SELECT id FROM orders;

--- case: levels after a parenthesis too many
--- covers: Q29 MAX RECURSION LEVEL of nothing
SELECT id FROM orders) MAX RECURSION LEVEL 9 AS (SELECT 1);
--- error
-- the query cannot be parsed
--- fixed
SELECT id FROM orders;

--- case: a star in a function of two arguments
--- covers: Q29 stars inside of calls
SELECT abs(*) AS a FROM orders;
--- error
-- * inside an expression is not supported here
--- fixed
SELECT abs(amount) AS a FROM orders;

--- case: first rows of an order in each partition
--- covers: Q29 SORT BY with LIMIT
SELECT id FROM orders SORT BY amount LIMIT 2;
--- error
-- the first rows of SORT BY, CLUSTER BY or DISTRIBUTE BY
--- fixed
SELECT id FROM orders ORDER BY amount LIMIT 2;

--- case: a subquery in ON of an outer join that mentions both sides
--- covers: Q29 a subquery in ON over both sides of an outer join
SELECT o.id, c.region FROM orders o LEFT JOIN customers c ON o.customer = c.id AND EXISTS (SELECT 1 FROM ledger l WHERE l.account = o.id AND l.note = c.region);
--- error
-- a subquery in ON that mentions both sides of the join
--- fixed
SELECT o.id, j.region FROM orders o LEFT JOIN (SELECT p.id, c.region FROM orders p JOIN customers c ON p.customer = c.id WHERE EXISTS (SELECT 1 FROM ledger l WHERE l.account = p.id AND l.note = c.region)) j ON o.id = j.id;

--- case: NOT IN in ON over the side whose rows the join keeps
--- covers: Q29 NOT IN that Spark answers without NULLs
SELECT o.id, c.region FROM orders o LEFT JOIN customers c ON o.customer = c.id AND o.id NOT IN (SELECT account FROM ledger);
--- error
-- IN with a subquery in ON of this join, where NULL is not FALSE
--- fixed
SELECT o.id, c.region FROM orders o LEFT JOIN customers c ON o.customer = c.id AND NOT EXISTS (SELECT 1 FROM ledger WHERE account = o.id);

--- case: NOT IN in ON of an inner join beside a condition on the other side
--- covers: Q29 NOT IN that Spark answers without NULLs
SELECT o.id, c.region FROM orders o JOIN customers c ON o.customer = c.id AND (o.id NOT IN (SELECT account FROM ledger) OR c.region = 'north');
--- error
-- IN with a subquery in ON of this join, where NULL is not FALSE
--- fixed
SELECT o.id, c.region FROM orders o JOIN customers c ON o.customer = c.id AND (NOT EXISTS (SELECT 1 FROM ledger WHERE account = o.id) OR c.region = 'north');

--- case: NOT around IN in ON of an anti join, over its left rows
--- covers: Q29 NOT IN that Spark answers without NULLs
SELECT o.id FROM orders o ANTI JOIN customers c ON o.customer = c.id AND NOT (o.id = 5 OR o.id IN (SELECT account FROM ledger));
--- error
-- IN with a subquery in ON of this join, where NULL is not FALSE
--- fixed
SELECT o.id FROM orders o ANTI JOIN customers c ON o.customer = c.id AND o.id <> 5 AND NOT EXISTS (SELECT 1 FROM ledger WHERE account = o.id);

--- case: IN … IS NULL in ON over the side whose rows the join keeps
--- covers: Q29 NOT IN that Spark answers without NULLs
SELECT o.id, c.region FROM orders o LEFT JOIN customers c ON (o.id IN (SELECT account FROM ledger)) IS NULL;
--- error
-- IN with a subquery in ON of this join, where NULL is not FALSE
--- fixed
SELECT o.id, c.region FROM (SELECT id, (id IN (SELECT account FROM ledger)) IS NULL AS unknown FROM orders) o LEFT JOIN customers c ON o.unknown;

--- case: a list of a RANGE frame, sorted by a function that may find ties
--- covers: Q24 a list in a RANGE frame
SELECT id, array_sort(collect_list(amount) OVER (PARTITION BY customer ORDER BY id), (a, b) -> a % 2 - b % 2) AS n FROM orders;
--- error
-- COLLECT_LIST over a RANGE frame
--- fixed
SELECT id, array_sort(collect_list(amount) OVER (PARTITION BY customer ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW), (a, b) -> a % 2 - b % 2) AS n FROM orders;

--- case: the second value by an order up and down
--- covers: Q24 NTH_VALUE in a RANGE frame of an order up and down
SELECT nth_value(amount, 2) OVER (ORDER BY id, customer DESC) AS f FROM orders;
--- error
-- NTH_VALUE over a RANGE frame
--- fixed
SELECT nth_value(amount, 2) OVER (ORDER BY id, customer DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS f FROM orders;

--- case: the last value, up to the rows that tie, by an order up and down
--- covers: Q24 LAST_VALUE in a RANGE frame of an order up and down
SELECT last_value(amount) OVER (ORDER BY id, customer DESC) AS f FROM orders;
--- error
-- LAST_VALUE over a RANGE frame
--- fixed
SELECT last_value(amount) OVER (ORDER BY id, customer DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS f FROM orders;

--- case: two lists of a group that are joined by place
--- covers: Q24 lists of a group, joined by place
SELECT customer, map_from_arrays(collect_list(id), collect_list(amount)) AS m FROM orders GROUP BY customer;
--- error
-- MAP_FROM_ARRAYS of two lists of a group
--- fixed
SELECT customer, map_from_entries(collect_list(struct(id, amount))) AS m FROM orders GROUP BY customer;

--- case: the last value that passes a FILTER, up to the rows that tie
--- covers: Q24 FILTER of LAST_VALUE in a RANGE frame
SELECT last_value(amount) FILTER (WHERE amount > 1) OVER (ORDER BY id) AS f FROM orders;
--- error
-- LAST_VALUE over a RANGE frame
--- fixed
SELECT last_value(amount) FILTER (WHERE amount > 1) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS f FROM orders;

--- case: COUNT of nothing
--- covers: Q24 COUNT without an argument
SELECT COUNT() AS n FROM orders;
--- error
-- COUNT without an argument
--- fixed
SELECT COUNT(*) AS n FROM orders;

--- case: a comma after the last column
--- covers: Q29 what Spark's grammar refuses
SELECT id, FROM orders;
--- error
-- the query cannot be parsed
--- fixed
SELECT id FROM orders;

--- case: two commas in a list
--- covers: Q29 what Spark's grammar refuses
SELECT id,, amount FROM orders;
--- error
-- the query cannot be parsed
--- fixed
SELECT id, amount FROM orders;

--- case: a comma before the first column
--- covers: Q29 what Spark's grammar refuses
SELECT , id FROM orders;
--- error
-- the query cannot be parsed
--- fixed
SELECT id FROM orders;

--- case: a comma after the last key
--- covers: Q29 what Spark's grammar refuses
SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer,;
--- error
-- the query cannot be parsed
--- fixed
SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer;

--- case: a comma after the last argument
--- covers: Q29 what Spark's grammar refuses
SELECT COALESCE(id, amount,) AS v FROM orders;
--- error
-- the query cannot be parsed
--- fixed
SELECT COALESCE(id, amount) AS v FROM orders;

--- case: SELECT without columns
--- covers: Q29 what Spark's grammar refuses
SELECT FROM orders WHERE amount > 3;
--- error
-- the query cannot be parsed
--- fixed
SELECT id FROM orders WHERE amount > 3;

--- case: AS without a name
--- covers: Q29 what Spark's grammar refuses
SELECT id, amount AS FROM orders;
--- error
-- the query cannot be parsed
--- fixed
SELECT id, amount AS a FROM orders;

--- case: AS before a text
--- covers: Q29 what Spark's grammar refuses
SELECT id AS 'order number' FROM orders;
--- error
-- the query cannot be parsed
--- fixed
SELECT id AS order_number FROM orders;

--- case: AS without a column
--- covers: Q29 what Spark's grammar refuses
SELECT AS id FROM orders;
--- error
-- the query cannot be parsed
--- fixed
SELECT id AS id FROM orders;

--- case: a keyword of joins as the alias of a table
--- covers: Q29 what Spark's grammar refuses
SELECT id FROM orders AS full;
--- error
-- the query cannot be parsed
--- fixed
SELECT id FROM orders AS `full`;

--- case: IN without parentheses
--- covers: Q29 what Spark's grammar refuses
SELECT id FROM orders WHERE amount IN customer;
--- error
-- the query cannot be parsed
--- fixed
SELECT id FROM orders WHERE amount IN (customer);

--- case: a frame with one bound after BETWEEN
--- covers: Q29 what Spark's grammar refuses
SELECT id, SUM(amount) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING) AS s FROM orders;
--- error
-- the query cannot be parsed
--- fixed
SELECT id, SUM(amount) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM orders;

--- case: a frame whose bound has no side
--- covers: Q29 what Spark's grammar refuses
SELECT id, SUM(amount) OVER (ORDER BY id ROWS BETWEEN 1 AND CURRENT ROW) AS s FROM orders;
--- error
-- the query cannot be parsed
--- fixed
SELECT id, SUM(amount) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM orders;

--- case: two bounds of a frame without BETWEEN
--- covers: Q29 what Spark's grammar refuses
SELECT id, SUM(amount) OVER (ORDER BY id RANGE 5 PRECEDING AND 5 FOLLOWING) AS s FROM orders;
--- error
-- the query cannot be parsed
--- fixed
SELECT id, SUM(amount) OVER (ORDER BY id RANGE BETWEEN 5 PRECEDING AND CURRENT ROW) AS s FROM orders;

--- case: two signs that are no shift
--- covers: Q29 what Spark's grammar refuses
SELECT id FROM orders WHERE amount > > 5;
--- error
-- the query cannot be parsed
--- fixed
SELECT id FROM orders WHERE amount > 5;

--- case: a subquery as an argument without parentheses
--- covers: Q29 what Spark's grammar refuses
SELECT COALESCE(SELECT MAX(id) FROM customers, 0) AS v FROM orders;
--- error
-- the query cannot be parsed
--- fixed
SELECT COALESCE((SELECT MAX(id) FROM customers), 0) AS v FROM orders;

--- case: ON without a condition
--- covers: Q29 what Spark's grammar refuses
SELECT o.id FROM orders AS o JOIN customers AS c ON;
--- error
-- the query cannot be parsed
--- fixed
SELECT o.id FROM orders AS o JOIN customers AS c ON o.customer = c.id;

--- case: LIMIT before GROUP BY
--- covers: Q29 what Spark's grammar refuses
SELECT customer, COUNT(*) AS n FROM orders LIMIT 1 GROUP BY customer;
--- error
-- the query cannot be parsed
--- fixed
SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer LIMIT 1;

--- case: OFFSET before LIMIT
--- covers: Q29 what Spark's grammar refuses
SELECT id FROM orders ORDER BY id OFFSET 1 LIMIT 1;
--- error
-- the query cannot be parsed
--- fixed
SELECT id FROM orders ORDER BY id LIMIT 1 OFFSET 1;

--- case: LATERAL without VIEW and without a comma
--- covers: Q29 what Spark's grammar refuses
SELECT v.id, t.tag FROM visits AS v LATERAL explode(v.tags) AS t(tag);
--- error
-- the query cannot be parsed
--- fixed
SELECT v.id, t.tag FROM visits AS v, LATERAL explode(v.tags) AS t(tag);

--- case: a star after a table
--- covers: Q29 what Spark's grammar refuses
SELECT id FROM orders *;
--- error
-- the query cannot be parsed
--- fixed
SELECT id FROM orders;

--- case: a field of a column that has none
--- covers: Q29 a value of the wrong type
SELECT customer.id FROM orders AS o JOIN customers AS c ON o.customer = c.id;
--- error
-- "customer" has no fields
--- fixed
SELECT c.id FROM orders AS o JOIN customers AS c ON o.customer = c.id;

--- case: an entry of a column that has none
--- covers: Q29 a value of the wrong type
SELECT id[0] AS first FROM orders;
--- error
-- "id" has no entries
--- fixed
SELECT id AS first FROM orders;

--- case: a number as a condition
--- covers: Q29 a value of the wrong type
SELECT id FROM orders WHERE customer;
--- error
-- "customer" is not a condition
--- fixed
SELECT id FROM orders WHERE customer <> 0;

--- case: a number beside OR
--- covers: Q29 a value of the wrong type
SELECT id FROM orders WHERE NOT customer OR id > 3;
--- error
-- "customer" is not a condition
--- fixed
SELECT id FROM orders WHERE NOT customer <> 0 OR id > 3;

--- case: a number as the condition of a join
--- covers: Q29 a value of the wrong type
SELECT o.id FROM orders AS o JOIN customers AS c ON c.id;
--- error
-- "id" is not a condition
--- fixed
SELECT o.id FROM orders AS o JOIN customers AS c ON c.id IS NOT NULL;

--- case: a type of PostgreSQL
--- covers: Q29 syntax of another engine
SELECT id, amount::text AS t FROM orders;
--- error
-- the query cannot be parsed
--- fixed
SELECT id, amount::STRING AS t FROM orders;

--- case: a type of PostgreSQL in CAST
--- covers: Q29 syntax of another engine
SELECT id, CAST(amount AS JSONB) AS t FROM orders;
--- error
-- the query cannot be parsed
--- fixed
SELECT id, CAST(amount AS STRING) AS t FROM orders;

--- case: a text of any length as VARCHAR
--- covers: Q29 syntax of another engine
SELECT id, CAST(amount AS VARCHAR) AS t FROM orders;
--- error
-- the query cannot be parsed
--- fixed
SELECT id, CAST(amount AS STRING) AS t FROM orders;

--- case: an array in brackets
--- covers: Q29 syntax of another engine
SELECT id FROM orders WHERE id IN (ARRAY[1, 2][0], 3);
--- error
-- the query cannot be parsed
--- fixed
SELECT id FROM orders WHERE id IN (ARRAY(1, 2)[0], 3);

--- case: a part of an array
--- covers: Q29 syntax of another engine
SELECT id, tags[0:1] AS t FROM visits;
--- error
-- the query cannot be parsed
--- fixed
SELECT id, slice(tags, 1, 2) AS t FROM visits;

--- case: a part of an array from a column on
--- covers: Q29 syntax of another engine
SELECT id, tags[id:] AS t FROM visits;
--- error
-- the query cannot be parsed
--- fixed
SELECT id, slice(tags, 1, 2) AS t FROM visits;

--- case: an operator of JSON
--- covers: Q29 syntax of another engine
SELECT id, region ->> 'a' AS t FROM customers;
--- error
-- the query cannot be parsed

--- case: an operator that Spark writes LIKE
--- covers: Q29 syntax of another engine
SELECT id FROM customers WHERE region ~~ 'a%';
--- error
-- the query cannot be parsed

--- case: a time at a zone
--- covers: Q29 syntax of another engine
SELECT id, happened AT TIME ZONE 'Europe/Berlin' AS t FROM visits;
--- error
-- Spark has no AT TIME ZONE
--- fixed
SELECT id, convert_timezone('UTC', 'Europe/Berlin', happened) AS t FROM visits;

--- case: a unit that Spark does not extract
--- covers: Q29 syntax of another engine
SELECT id, EXTRACT(EPOCH FROM happened) AS t FROM visits;
--- error
-- Spark cannot extract EPOCH
--- fixed
SELECT id, UNIX_TIMESTAMP(happened) AS t FROM visits;

--- case: ends in either order
--- covers: Q29 syntax of another engine
SELECT id FROM orders WHERE amount BETWEEN SYMMETRIC 5 AND 1;
--- error
-- Spark has no BETWEEN SYMMETRIC
--- fixed
SELECT id FROM orders WHERE amount BETWEEN LEAST(5, 1) AND GREATEST(5, 1);

--- case: whether a text is JSON
--- covers: Q29 syntax of another engine
SELECT id FROM customers WHERE region IS JSON;
--- error
-- Spark has no IS JSON
--- fixed
SELECT id FROM customers WHERE try_parse_json(region) IS NOT NULL;

--- case: a function of PostgreSQL
--- covers: Q29 a function of the user's own
SELECT customer, array_to_string(array_agg(id), ',') AS ids FROM orders GROUP BY customer;
--- error
-- array_to_string() is neither a function of Spark nor a declared one

--- case: a function of BigQuery
--- covers: Q29 a function of the user's own
SELECT id, SAFE_CAST(amount AS STRING) AS t FROM orders;
--- error
-- safe_cast() is neither a function of Spark nor a declared one

--- case: too few arguments
--- covers: Q29 a wrong number of arguments
SELECT id, lpad(region) AS t FROM customers;
--- error
-- lpad() takes 2 or 3 arguments, not 1
--- fixed
SELECT id, lpad(region, 3) AS t FROM customers;

--- case: too many arguments
--- covers: Q29 a wrong number of arguments
SELECT id, abs(amount, 2) AS t FROM orders;
--- error
-- abs() takes 1 argument, not 2
--- fixed
SELECT id, abs(amount) AS t FROM orders;

--- case: no argument
--- covers: Q29 a wrong number of arguments
SELECT id, COALESCE(greatest(), 1) AS t FROM orders;
--- error
-- greatest() takes 2 or more arguments, not 0
--- fixed
SELECT id, COALESCE(greatest(id, amount), 1) AS t FROM orders;

--- case: a template
--- covers: Q29 a template
SELECT id FROM {{ ref('orders') }};
--- error
-- the query is a Jinja template
--- fixed
SELECT id FROM orders;

--- case: a statement of a template
--- covers: Q29 a template
SELECT id FROM orders {% if is_incremental() %} WHERE id > 3 {% endif %};
--- error
-- the query is a Jinja template
--- fixed
SELECT id FROM orders WHERE id > 3;

--- case: an output in WHERE
--- covers: Q29 an output in WHERE
SELECT amount * 2 AS twice FROM orders WHERE twice > 3;
--- error
-- column "twice" does not exist
--- fixed
SELECT amount * 2 AS twice FROM orders WHERE amount * 2 > 3;

--- case: a column of a table that one inside of the same alias hides
--- covers: Q29 an alias that one inside hides
SELECT t.region FROM customers AS t WHERE EXISTS (SELECT 1 FROM orders AS t WHERE t.customer = 1 AND region = 'a');
--- error
-- two tables are called "t", one of them in a subquery
--- fixed
SELECT t.region FROM customers AS t WHERE EXISTS (SELECT 1 FROM orders AS o WHERE o.customer = 1 AND region = 'a');

--- case: the name of a table before its alias
--- covers: Q29 a column that is not there
SELECT c.c.id FROM customers AS c;
--- error
-- column "c.c.id" does not exist
--- fixed
SELECT c.id FROM customers AS c;

--- case: a join whose FROM is read as that of IS DISTINCT FROM
--- covers: Q29 what Spark's parser refuses
SELECT o.id, c.region IS DISTINCT FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id AND NOT EXISTS (SELECT * FROM regions AS r WHERE r.name = c.region);
--- error
-- JOIN without FROM
--- fixed
SELECT o.id FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id AND NOT EXISTS (SELECT * FROM regions AS r WHERE r.name = c.region);

--- case: a join without FROM
--- covers: Q29 what Spark's parser refuses
SELECT customer JOIN orders;
--- error
-- JOIN without FROM
--- fixed
SELECT customer FROM orders;

--- case: a query in FROM without parentheses
--- covers: Q29 what Spark's parser refuses
SELECT id FROM FROM (SELECT id FROM orders);
--- error
-- the query cannot be parsed
--- fixed
SELECT id FROM (SELECT id FROM orders);

--- case: NATURAL before SEMI JOIN
--- covers: Q29 joins that Spark does not have
SELECT o.id FROM orders AS o NATURAL LEFT SEMI JOIN customers;
--- error
-- Spark has no NATURAL LEFT SEMI JOIN
--- fixed
SELECT o.id FROM orders AS o LEFT SEMI JOIN customers USING (id);

--- case: VALUES over a table beside it
--- covers: Q29 a table function over a table beside it, without LATERAL
SELECT o.id, v.x FROM orders AS o, (VALUES (o.amount)) AS v(x);
--- error
-- VALUES over columns of another table in FROM, without LATERAL
--- fixed
SELECT o.id, v.x FROM orders AS o, LATERAL explode(array(o.amount)) AS v(x);

--- case: a definition with fewer names than columns
--- covers: Q29 an alias that renames some of the columns
WITH t (a) AS (SELECT id, amount FROM orders) SELECT a FROM t;
--- error
-- "t" names 1 of 2 columns
--- fixed
WITH t (a, b) AS (SELECT id, amount FROM orders) SELECT a FROM t;

--- case: a query without a column
--- covers: Q29 a query without a column
SELECT * EXCEPT (id, customer, amount) FROM orders;
--- error
-- the query returns no column
--- fixed
SELECT * EXCEPT (id, customer) FROM orders;

--- case: the columns of one table after a join by names and a step
--- covers: Q29 pipe syntax
FROM orders JOIN customers USING (id) |> EXTEND 1 AS one |> SELECT customers.*;
--- error
-- * inside an expression is not supported here
--- fixed
FROM orders JOIN customers USING (id) |> EXTEND 1 AS one |> SELECT id, region;

--- case: the columns of one table after a set operation of a pipe
--- covers: Q29 pipe syntax
FROM orders |> UNION ALL (FROM orders) |> SELECT hash(orders.*) AS h;
--- error
-- * inside an expression is not supported here
--- fixed
FROM orders |> UNION ALL (FROM orders) |> SELECT hash(*) AS h;

--- case: the columns of a table that is called as a struct, after a join by names and a step
--- covers: Q29 pipe syntax
FROM (SELECT id, named_struct('a', 1, 'b', 2) AS customers FROM orders) AS o JOIN customers USING (id) |> EXTEND 1 AS one |> SELECT customers.*;
--- error
-- * inside an expression is not supported here
--- fixed
FROM (SELECT id, named_struct('a', 1, 'b', 2) AS pair FROM orders) AS o JOIN customers USING (id) |> EXTEND 1 AS one |> SELECT pair.*;
