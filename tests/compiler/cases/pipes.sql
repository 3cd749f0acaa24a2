--- case: a pipe of conditions, groups and a choice of columns
--- covers: Q29 pipe syntax
FROM orders |> WHERE amount > 1 |> AGGREGATE SUM(amount) AS total, COUNT(*) AS n GROUP BY customer |> WHERE n > 1 |> SELECT customer, total;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 7), (4, 2, 1);
--- change
INSERT INTO orders VALUES (5, 2, 8);
DELETE FROM orders WHERE id = 2;
--- delta
-- -1 | 1 | 11
-- +1 | 2 | 15

--- case: joins along a pipe
--- covers: Q29 pipe syntax
FROM orders AS o |> WHERE amount > 1 |> WHERE id = 1 OR id > 2 |> LEFT JOIN customers AS c ON o.customer = c.id |> SELECT o.id, c.region;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 7), (4, 2, 1);
INSERT INTO customers VALUES (1, 'x');
--- change
INSERT INTO customers VALUES (2, 'y');
DELETE FROM customers WHERE id = 1;
--- delta
-- -1 | 1 | x
-- +1 | 1 | NULL
-- -1 | 3 | NULL
-- +1 | 3 | y

--- case: columns that a pipe adds and leaves out
--- covers: Q29 EXTEND and DROP of a pipe
FROM orders |> EXTEND amount * 2 AS twice, twice + 1 AS more |> DROP amount, twice |> WHERE orders.id > 1;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
--- change
UPDATE orders SET amount = amount + 1;
--- delta
-- -1 | 2 | 1 | 13
-- +1 | 2 | 1 | 15

--- case: the first rows of a pipe
--- covers: Q29 ORDER BY and LIMIT of a pipe
FROM orders |> ORDER BY amount DESC, id |> LIMIT 1 |> SELECT id AS first;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
--- change
INSERT INTO orders VALUES (3, 1, 7);
--- delta
-- -1 | 2
-- +1 | 3

--- case: rows of a pipe that begin later
--- covers: Q29 ORDER BY and LIMIT of a pipe
FROM orders |> ORDER BY id |> OFFSET 1 |> LIMIT 1;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
--- change
INSERT INTO orders VALUES (0, 1, 7);
--- delta
-- -1 | 2 | 1 | 6
-- +1 | 1 | 1 | 5

--- case: a pipe after a union, and a union along a pipe
--- covers: Q29 set operations of a pipe
SELECT id FROM orders UNION ALL SELECT id FROM customers |> WHERE id > 1 |> UNION (FROM orders |> SELECT amount) |> AS t |> SELECT t.id AS n;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
--- change
INSERT INTO orders VALUES (3, 1, 2);
INSERT INTO customers VALUES (1, 'x'), (4, 'x');
--- delta
-- +1 | 3
-- +1 | 4

--- case: pipes in WITH, in parentheses and in a subquery
--- covers: Q29 pipe syntax
WITH large AS (FROM orders |> WHERE amount > 5) FROM large AS l |> WHERE l.customer IN (FROM customers |> WHERE region = 'x' |> SELECT id) |> JOIN (FROM regions |> SELECT name) AS r ON r.name = 'x' |> SELECT l.id, r.name;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 7);
INSERT INTO customers VALUES (1, 'x');
INSERT INTO regions VALUES ('x', 'y');
--- change
INSERT INTO customers VALUES (2, 'x');
DELETE FROM customers WHERE id = 1;
--- delta
-- -1 | 2 | x
-- +1 | 3 | x

--- case: a window along a pipe
--- covers: Q29 pipe syntax
FROM orders |> SELECT id, SUM(amount) OVER w AS s WINDOW w AS (PARTITION BY customer ORDER BY id) |> WHERE s > 5;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 7);
--- change
UPDATE orders SET amount = 6 WHERE id = 1;
--- delta
-- -1 | 2 | 11
-- +1 | 2 | 12
-- +1 | 1 | 6

--- case: PIVOT along a pipe
--- covers: Q29 pipe syntax; Q31 PIVOT along a pipe
FROM orders |> SELECT customer, amount |> PIVOT (SUM(amount) FOR customer IN (1 AS one, 2 AS two)) |> WHERE one > 1;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 7);
--- change
UPDATE orders SET customer = 2 WHERE id = 1;
--- delta
-- -1 | 11 | 7
-- +1 | 6 | 12

--- case: groups of expressions along a pipe
--- covers: Q29 AGGREGATE of a pipe
FROM orders |> AGGREGATE MAX(id) AS m GROUP BY customer AS c, amount % 2 AS odd |> ORDER BY m;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 7);
--- change
INSERT INTO orders VALUES (4, 1, 7);
--- delta
-- -1 | 1 | 1 | 1
-- +1 | 1 | 1 | 4

--- case: groups without aggregates, and aggregates without groups, along a pipe
--- covers: Q29 AGGREGATE of a pipe
FROM orders |> AGGREGATE GROUP BY customer |> AGGREGATE COUNT(*) AS n;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 7);
--- change
INSERT INTO orders VALUES (4, 3, 7), (5, 1, 1);
--- delta
-- -1 | 2
-- +1 | 3

--- case: a pipe after a union that begins with TABLE
--- covers: Q29 set operations of a pipe
TABLE orders UNION ALL SELECT id, id, id FROM customers |> WHERE id > 1;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
--- change
INSERT INTO orders VALUES (0, 1, 2), (3, 1, 2);
INSERT INTO customers VALUES (1, 'x'), (4, 'x');
--- delta
-- +1 | 3 | 1 | 2
-- +1 | 4 | 4 | 4

--- case: SET keeps the place of a column
--- covers: Q29 SET of a pipe
FROM orders AS o |> WHERE o.amount > 4 |> SET customer = customer + o.amount, `id` = customer * 10 |> WHERE id > 50;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 2, 3), (3, 0, 6);
--- change
UPDATE orders SET amount = 7 WHERE id = 1;
INSERT INTO orders VALUES (4, -9, 5);
DELETE FROM orders WHERE id = 3;
--- delta
-- -1 | 60 | 6 | 5
-- +1 | 80 | 8 | 7
-- -1 | 60 | 6 | 6

--- case: SET over all rows, after LIMIT and in a definition of WITH
--- covers: Q29 SET of a pipe
WITH large AS (FROM orders |> WHERE amount > 4 |> SET amount = SUM(amount) OVER (PARTITION BY customer)), twice AS (FROM large |> SET id = id * 2) FROM twice |> ORDER BY id |> LIMIT 2 |> SET customer = (SELECT MAX(region) FROM customers) |> SELECT *;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 7), (4, 2, 1);
INSERT INTO customers VALUES (1, 'x');
--- change
DELETE FROM orders WHERE id = 1;
INSERT INTO customers VALUES (1, 'y');
--- delta
-- -1 | 2 | x | 11
-- -1 | 4 | x | 11
-- +1 | 4 | y | 6
-- +1 | 6 | y | 7

--- case: SET in a union and in a list of IN
--- covers: Q29 SET of a pipe
FROM orders |> WHERE customer IN (FROM customers |> SET id = id + 1 |> SELECT id) |> UNION ALL (FROM orders |> SET amount = 0);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 2, 6);
INSERT INTO customers VALUES (1, 'x');
--- change
INSERT INTO customers VALUES (0, 'x');
DELETE FROM orders WHERE id = 2;
--- delta
-- +1 | 1 | 1 | 5
-- -1 | 2 | 2 | 6
-- -1 | 2 | 2 | 0

--- case: a number as a key along a pipe
--- covers: Q29 AGGREGATE of a pipe
FROM orders AS o |> EXTEND amount % 2 AS odd |> AGGREGATE SUM(id) AS s GROUP BY 2, 4, o.amount > 5 AS large |> SELECT customer, odd, large, s;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 7);
--- change
INSERT INTO orders VALUES (4, 1, 3);
DELETE FROM orders WHERE id = 2;
--- delta
-- -1 | 1 | 1 | False | 1
-- +1 | 1 | 1 | False | 5
-- -1 | 1 | 0 | True | 2

--- case: columns added to joined tables along a pipe
--- covers: Q29 EXTEND and DROP of a pipe
FROM orders AS o JOIN customers AS c ON o.customer = c.id
|> WHERE o.amount > 1
|> EXTEND o.amount * 2 AS twice, twice + 1 AS more
|> WHERE more > 5 AND c.id = o.customer
|> AGGREGATE SUM(twice - 1) AS total, COUNT(*) AS n, MAX(o.id) AS most GROUP BY c.region
|> WHERE c.region <> 'z';
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 1), (3, 2, 7), (4, 2, 2), (5, 3, 9);
INSERT INTO customers VALUES (1, 'x'), (2, 'y'), (3, 'z');
--- change
UPDATE orders SET amount = amount + 1;
INSERT INTO customers VALUES (1, 'y');
--- delta
-- +1 | x | 11 | 1 | 1
-- +1 | y | 31 | 3 | 4
-- -1 | x | 9 | 1 | 1
-- -1 | y | 13 | 1 | 3

--- case: names of joined tables after a choice of their columns along a pipe
--- covers: Q29 pipe syntax
FROM orders AS o, customers AS c
|> WHERE o.customer = c.id
|> ORDER BY o.amount
|> SELECT DISTINCT o.amount, c.region, c.id AS customer
|> WHERE o.amount > 1
|> JOIN regions AS r ON r.name = c.region
|> SELECT o.amount, r.country, customer;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 5), (3, 2, 7), (4, 2, 1);
INSERT INTO customers VALUES (1, 'x'), (2, 'y');
INSERT INTO regions VALUES ('x', 'X'), ('y', 'Y');
--- change
DELETE FROM orders WHERE id = 3;
UPDATE customers SET region = 'y' WHERE id = 1;
--- delta
-- +1 | 5 | Y | 1
-- -1 | 5 | X | 1
-- -1 | 7 | Y | 2

--- case: joins after a condition on joined tables along a pipe
--- covers: Q29 pipe syntax
FROM orders AS o JOIN customers AS c ON o.customer = c.id
|> WHERE c.region = 'x' OR o.amount > 6
|> LEFT JOIN regions AS r ON r.name = c.region
|> EXTEND o.id + c.id AS ids
|> SELECT o.id AS o, c.id AS c, ids, r.country;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 2, 5), (3, 2, 7);
INSERT INTO customers VALUES (1, 'x'), (2, 'y');
INSERT INTO regions VALUES ('y', 'Y');
--- change
INSERT INTO regions VALUES ('x', 'X');
INSERT INTO orders VALUES (4, 2, 8), (5, 2, 6);
--- delta
-- +1 | 1 | 1 | 2 | X
-- +1 | 4 | 2 | 6 | Y
-- -1 | 1 | 1 | 2 | NULL

--- case: a column that a pipe adds has the name of one inside of a subquery
--- covers: Q29 EXTEND and DROP of a pipe
FROM orders AS o JOIN customers AS c ON o.customer = c.id
|> EXTEND o.amount + 1 AS name, UPPER(c.region) AS place
|> WHERE EXISTS (SELECT 1 FROM regions AS r WHERE name = 'x') AND EXISTS (SELECT 1 FROM regions AS r WHERE r.country = place)
|> SELECT name, place;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 2, 5);
INSERT INTO customers VALUES (1, 'x'), (2, 'y');
INSERT INTO regions VALUES ('x', 'X');
--- change
INSERT INTO regions VALUES ('q', 'Y');
UPDATE orders SET amount = 8 WHERE id = 1;
--- delta
-- +1 | 6 | Y
-- +1 | 9 | X
-- -1 | 6 | X

--- case: all columns of joined tables and one that a pipe adds
--- covers: Q29 EXTEND and DROP of a pipe
FROM orders AS o JOIN regions AS r ON o.id = LENGTH(r.name)
|> EXTEND o.amount * 2 AS twice
|> SELECT *, twice + o.amount AS more
|> SELECT twice, more, country, name, amount;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 2, 5);
INSERT INTO regions VALUES ('x', 'X'), ('yy', 'Y');
--- change
UPDATE orders SET amount = 8 WHERE id = 1;
--- delta
-- +1 | 16 | 24 | X | x | 8
-- -1 | 10 | 15 | X | x | 5

--- case: a list in order along a pipe, whose words hold another GROUP
--- covers: Q29 AGGREGATE of a pipe
FROM customers |> AGGREGATE LISTAGG(region, ',') WITHIN GROUP (ORDER BY region DESC) AS l GROUP BY id % 2 AS odd;
--- before
INSERT INTO customers VALUES (1, 'x'), (2, 'y'), (3, 'z');
--- change
INSERT INTO customers VALUES (5, 'a');
--- delta
-- +1 | 1 | z,x,a
-- -1 | 1 | z,x

--- case: structs, and names that are words of SQL, that a pipe adds to joined tables
--- covers: Q29 EXTEND and DROP of a pipe
FROM visits AS v JOIN orders AS o ON o.id = v.id
|> EXTEND named_struct('x', o.amount) AS s, CAST(v.happened AS DATE) AS date
|> WHERE date > DATE '2013-01-01' AND s.x > 1
|> AGGREGATE SUM(s.x) AS total GROUP BY date;
--- before
INSERT INTO visits VALUES (1, TIMESTAMP '2013-01-31 10:00:00', NULL, NULL), (2, TIMESTAMP '2013-01-31 11:00:00', NULL, NULL);
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
--- change
UPDATE orders SET amount = 7 WHERE id = 2;
--- delta
-- +1 | 2013-01-31 | 12
-- -1 | 2013-01-31 | 11

--- case: names of several tables after the first rows of a pipe
--- covers: Q29 names of several tables along a pipe
FROM orders AS o JOIN customers AS c ON o.customer = c.id
|> ORDER BY o.amount DESC, o.id |> LIMIT 2
|> WHERE c.region <> 'z' |> EXTEND o.amount + c.id AS more
|> SELECT o.id, c.id AS customer, c.region, more;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 7);
INSERT INTO customers VALUES (1, 'x'), (2, 'y');
--- change
UPDATE orders SET amount = 9 WHERE id = 1;
UPDATE customers SET region = 'z' WHERE id = 2;
--- delta
-- -1 | 3 | 2 | y | 9
-- -1 | 2 | 1 | x | 7
-- +1 | 1 | 1 | x | 10

--- case: names of several tables after a pipe left out and changed columns
--- covers: Q29 names of several tables along a pipe
FROM orders AS o |> LEFT JOIN customers AS c ON o.customer = c.id
|> DROP customer |> SET amount = o.amount * 10, region = coalesce(region, 'none')
|> WHERE c.id IS NULL OR c.id < 3 |> SELECT o.id, amount, region, c.id AS c;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, NULL, 6), (3, 3, 7);
INSERT INTO customers VALUES (1, 'x'), (3, 'y');
--- change
UPDATE orders SET amount = 8 WHERE id < 3;
UPDATE customers SET id = 2 WHERE id = 3;
--- delta
-- -1 | 1 | 50 | x | 1
-- +1 | 1 | 80 | x | 1
-- -1 | 2 | 60 | none | NULL
-- +1 | 2 | 80 | none | NULL
-- +1 | 3 | 70 | none | NULL

--- case: names of several tables after a set operation along a pipe
--- covers: Q29 names of several tables along a pipe
FROM orders AS o JOIN customers AS c ON o.customer = c.id
|> UNION ALL (SELECT id, 0, id * 100, id, 'all' FROM orders)
|> WHERE o.amount > 5 AND c.region <> 'y' |> AGGREGATE COUNT(*) AS n, SUM(o.id * 10 - c.id) AS total GROUP BY c.region;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 7);
INSERT INTO customers VALUES (1, 'x'), (2, 'y');
--- change
UPDATE orders SET amount = 7 WHERE id = 1;
DELETE FROM orders WHERE id = 3;
--- delta
-- -1 | x | 1 | 19
-- +1 | x | 2 | 28
-- -1 | all | 3 | 54
-- +1 | all | 2 | 27

--- case: a column of a pipe's joined tables by its number
--- covers: Q29 names of several tables along a pipe
FROM orders AS o |> JOIN customers AS c ON o.customer = c.id |> AGGREGATE SUM(amount) AS total GROUP BY 4, region |> WHERE id < 9;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 7);
INSERT INTO customers VALUES (1, 'x'), (2, 'y'), (9, 'z');
--- change
UPDATE orders SET customer = 2 WHERE id = 1;
INSERT INTO orders VALUES (4, 9, 1);
--- delta
-- -1 | 1 | x | 11
-- +1 | 1 | x | 6
-- -1 | 2 | y | 7
-- +1 | 2 | y | 12

--- case: a join of a pipe after an expression over several tables
--- covers: Q29 names of several tables along a pipe
FROM orders AS o JOIN customers AS c ON o.customer = c.id
|> EXTEND o.amount + 1 AS more
|> LEFT JOIN regions AS r ON r.name = c.region AND o.amount > 5
|> SELECT o.id, more, r.country, c.region;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
INSERT INTO customers VALUES (1, 'x');
INSERT INTO regions VALUES ('x', 'here');
--- change
UPDATE orders SET amount = 7 WHERE id = 1;
--- delta
-- -1 | 1 | 6 | NULL | x
-- +1 | 1 | 8 | here | x

--- case: TABLE before a pipe whose steps say its name
--- covers: Q12 TABLE before a pipe
TABLE orders |> WHERE orders.amount > 5 |> SELECT orders.id, amount;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
--- delta
-- -1 | 2 | 6
-- +1 | 3 | 8
-- +1 | 9 | 9

--- case: TABLE before a pipe with a join by names
--- covers: Q12 TABLE before a pipe
TABLE customers |> NATURAL LEFT JOIN orders AS o |> SELECT customers.*;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- +1 | 2 | d
-- +1 | 9 | e

--- case: groups of a pipe's SELECT
--- covers: Q29 GROUP BY in SELECT of a pipe
TABLE orders |> WHERE amount > 1 |> SELECT customer, SUM(amount) AS total GROUP BY customer |> WHERE total > 5;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 2, 6), (3, 1, 1);
--- change
INSERT INTO orders VALUES (4, 1, 3), (5, 2, 0);
DELETE FROM orders WHERE id = 2;
--- delta
-- +1 | 1 | 8
-- -1 | 2 | 6

--- case: orders within Spark's partitions along a pipe
--- covers: Q29 SORT BY, CLUSTER BY and DISTRIBUTE BY along a pipe
TABLE orders |> SORT BY amount |> DISTRIBUTE BY customer |> SELECT id |> CLUSTER BY id;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 2, 6);
--- change
INSERT INTO orders VALUES (4, 1, 3);
DELETE FROM orders WHERE id = 2;
--- delta
-- +1 | 4
-- -1 | 2

--- case: a number with a name as a key along a pipe
--- covers: Q29 AGGREGATE of a pipe
FROM orders |> AGGREGATE SUM(amount) AS s GROUP BY 2 AS two, 3000000000 AS many;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
--- change
INSERT INTO orders VALUES (3, 2, 7);
--- delta
-- -1 | 2 | 3000000000 | 11
-- +1 | 2 | 3000000000 | 18

--- case: DROP of a column by its table along a pipe
--- covers: Q29 EXTEND and DROP of a pipe
FROM orders AS o JOIN customers AS c ON o.customer = c.id |> DROP o.id, customer, region |> SELECT id, amount;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 7);
INSERT INTO customers VALUES (1, 'x'), (2, 'y');
--- change
DELETE FROM orders WHERE id = 3;
INSERT INTO orders VALUES (4, 2, 8);
--- delta
-- -1 | 2 | 7
-- +1 | 2 | 8

--- case: tables of columns after a choice, a limit and a union along a pipe
--- covers: Q29 names of several tables along a pipe
FROM orders AS o JOIN customers AS c ON o.customer = c.id
|> SELECT o.id, c.id, o.amount AS paid, region
|> ORDER BY o.id |> LIMIT 3
|> UNION ALL (SELECT 9, 9, 9, 'z' FROM regions)
|> EXTEND o.id + c.id AS ids
|> WHERE c.region <> 'y' AND o.id > 0
|> SELECT ids, c.id, o.id AS own, paid;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 7), (4, 1, 8);
INSERT INTO customers VALUES (1, 'x'), (2, 'y');
INSERT INTO regions VALUES ('x', 'y');
--- change
DELETE FROM orders WHERE id = 1;
INSERT INTO regions VALUES ('x', 'z');
--- delta
-- -1 | 2 | 1 | 1 | 5
-- +1 | 5 | 1 | 4 | 8
-- +1 | 18 | 9 | 9 | 9

--- case: keys of AGGREGATE that a name before them makes
--- covers: Q29 AGGREGATE of a pipe
FROM orders AS o |> AGGREGATE MAX(amount) AS most GROUP BY customer AS c, c % 2 AS odd |> EXTEND c * 10 AS ten |> AGGREGATE SUM(most) AS s, COUNT(*) AS n GROUP BY odd;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 2, 6), (3, 3, 7);
--- change
INSERT INTO orders VALUES (4, 3, 9);
DELETE FROM orders WHERE id = 2;
--- delta
-- -1 | 1 | 12 | 2
-- +1 | 1 | 14 | 2
-- -1 | 0 | 6 | 1

--- case: groups of joined tables after a step, with columns that two tables have
--- covers: Q29 names of several tables along a pipe
FROM orders AS o JOIN customers AS c ON o.customer = c.id
|> EXTEND o.amount * 2 AS twice
|> AGGREGATE SUM(o.id) AS orders, COUNT(c.id) AS n, MIN(twice) AS least GROUP BY c.id;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 7);
INSERT INTO customers VALUES (1, 'x'), (2, 'y');
--- change
DELETE FROM orders WHERE id = 1;
INSERT INTO orders VALUES (4, 2, 1);
--- delta
-- -1 | 1 | 3 | 2 | 10
-- +1 | 1 | 2 | 1 | 12
-- -1 | 2 | 3 | 1 | 14
-- +1 | 2 | 7 | 2 | 2

--- case: a choice without copies at the end of a pipe
--- covers: Q29 pipe syntax
SELECT DISTINCT customer, amount FROM orders |> WHERE amount > 1 |> SELECT DISTINCT orders.customer;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 7);
--- change
DELETE FROM orders WHERE id = 3;
INSERT INTO orders VALUES (4, 1, 7), (5, 3, 7);
--- delta
-- -1 | 2
-- +1 | 3

--- case: clauses after the last step of a pipe
--- covers: Q29 ORDER BY and LIMIT of a pipe
FROM orders |> WHERE amount > 1 ORDER BY amount DESC, id LIMIT 2;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 7);
--- change
INSERT INTO orders VALUES (4, 1, 9);
--- delta
-- -1 | 2 | 1 | 6
-- +1 | 4 | 1 | 9

--- case: the first rows of a pipe without an order
--- covers: Q29 ORDER BY and LIMIT of a pipe
FROM orders |> LIMIT 2 OFFSET 1 |> SELECT orders.id;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 7);
--- change
DELETE FROM orders WHERE id = 1;
--- delta
-- -1 | 2

--- case: a union between steps of a pipe
--- covers: Q29 set operations of a pipe
FROM orders |> SELECT id UNION ALL SELECT id FROM customers |> WHERE orders.id > 1;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
INSERT INTO customers VALUES (1, 'x'), (2, 'y');
--- change
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (3, 'x');
--- delta
-- -1 | 2
-- +1 | 3

--- case: rows of each table along a pipe whose questions are pipes
--- covers: Q29 pipe syntax
FROM orders AS o
|> EXTEND (FROM customers AS c |> WHERE c.id = o.customer |> AGGREGATE MAX(c.region) AS m) AS r
|> WHERE EXISTS (FROM regions AS g |> WHERE g.name = r |> SELECT g.name)
|> SELECT o.id, r;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 2, 6);
INSERT INTO customers VALUES (1, 'x'), (2, 'y');
INSERT INTO regions VALUES ('x', 'X');
--- change
INSERT INTO regions VALUES ('y', 'Y');
--- delta
-- +1 | 2 | y

--- case: SET after the first rows, of columns that it has set
--- covers: Q29 SET of a pipe
FROM orders |> ORDER BY id |> LIMIT 2 |> SET customer = customer + amount, id = customer * 10;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 7);
--- change
DELETE FROM orders WHERE id = 1;
--- delta
-- -1 | 60 | 6 | 5
-- +1 | 90 | 9 | 7

--- case: a step after LATERAL over a subquery with an alias
--- covers: Q29 pipe syntax
FROM customers AS c, LATERAL (SELECT o.amount AS cents FROM orders AS o WHERE o.customer = c.id) AS sale |> SELECT c.region, sale.cents |> WHERE cents > 1;
--- before
INSERT INTO customers VALUES (1, 'x'), (2, 'y');
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 1), (3, 2, 7);
--- change
INSERT INTO orders VALUES (4, 2, 8);
DELETE FROM customers WHERE id = 1;
--- delta
-- -1 | x | 5
-- +1 | y | 8

--- case: a step after LATERAL over a subquery without an alias
--- covers: Q29 pipe syntax
FROM customers AS c, LATERAL (SELECT o.amount AS cents FROM orders AS o WHERE o.customer = c.id) |> SELECT cents;
--- before
INSERT INTO customers VALUES (1, 'x'), (2, 'y');
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 1), (3, 2, 7);
--- change
INSERT INTO orders VALUES (4, 2, 8);
DELETE FROM customers WHERE id = 1;
--- delta
-- -1 | 5
-- -1 | 1
-- +1 | 8

--- case: the columns of one of two tables after LIMIT
--- covers: Q29 ORDER BY and LIMIT of a pipe
FROM orders AS o JOIN customers AS c ON o.customer = c.id |> ORDER BY o.id |> LIMIT 2 |> WHERE o.amount > 1 |> SELECT o.id AS sale, c.*;
--- before
INSERT INTO customers VALUES (1, 'x'), (2, 'y');
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 1), (3, 2, 7);
--- change
DELETE FROM orders WHERE id = 2;
--- delta
-- +1 | 3 | 2 | y
