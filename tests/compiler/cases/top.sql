--- case: a better row comes and the last one leaves
--- covers: Q21 ORDER BY with LIMIT
SELECT id, amount FROM orders ORDER BY amount DESC LIMIT 2;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6), (12, 1, 3);
--- change
INSERT INTO orders VALUES (13, 1, 9);
--- delta
-- -1 | 10 | 5
-- +1 | 13 | 9

--- case: one of the first leaves and the next takes its place
--- covers: Q21 ORDER BY with LIMIT
SELECT id, amount FROM orders ORDER BY amount DESC LIMIT 2;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6), (12, 1, 3);
--- change
DELETE FROM orders WHERE id = 11;
--- delta
-- -1 | 11 | 6
-- +1 | 12 | 3

--- case: a row beyond the last changes nothing
--- covers: Q21 ORDER BY with LIMIT
SELECT id, amount FROM orders ORDER BY amount DESC LIMIT 2;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6), (12, 1, 3);
--- change
UPDATE orders SET amount = 4 WHERE id = 12;
--- delta

--- case: fewer rows than the limit
--- covers: Q21 ORDER BY with LIMIT
SELECT id FROM orders ORDER BY id LIMIT 3;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
DELETE FROM orders;
INSERT INTO orders VALUES (11, 1, 5), (12, 1, 5);
--- delta
-- -1 | 10
-- +1 | 11
-- +1 | 12

--- case: OFFSET leaves out the first
--- covers: Q21 OFFSET
SELECT id, amount FROM orders ORDER BY amount LIMIT 1 OFFSET 1;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6);
--- change
INSERT INTO orders VALUES (12, 1, 1);
--- delta
-- +1 | 10 | 5
-- -1 | 11 | 6

--- case: OFFSET without LIMIT
--- covers: Q21 OFFSET
SELECT id FROM orders ORDER BY id OFFSET 2;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6), (12, 1, 6);
--- change
DELETE FROM orders WHERE id = 10;
--- delta
-- -1 | 12

--- case: copies and ties at the limit
--- covers: Q21 ties; Q26 copies at the limit
SELECT customer, amount FROM orders ORDER BY amount LIMIT 3;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5), (12, 2, 5), (13, 3, 5);
--- change
DELETE FROM orders WHERE id = 10;
--- delta
-- -1 | 1 | 5
-- +1 | 3 | 5

--- case: NULLs first and NULLs last
--- covers: Q21 NULLS FIRST and NULLS LAST
SELECT id FROM (SELECT id, amount FROM orders ORDER BY amount LIMIT 1) AS a UNION ALL SELECT id FROM (SELECT id, amount FROM orders ORDER BY amount DESC NULLS FIRST LIMIT 1) AS b UNION ALL SELECT id FROM (SELECT id, amount FROM orders ORDER BY amount NULLS LAST LIMIT 1) AS c;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 7);
--- change
INSERT INTO orders VALUES (12, 1, NULL);
--- delta
-- -1 | 10
-- -1 | 11
-- +2 | 12

--- case: the customers with the most, over groups
--- covers: Q21 ORDER BY with LIMIT over groups
SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer ORDER BY SUM(amount) DESC LIMIT 1;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 7);
--- change
INSERT INTO orders VALUES (12, 1, 3);
--- delta
-- +1 | 1 | 8
-- -1 | 2 | 7

--- case: ordered by what is not returned
--- covers: Q21 ORDER BY a column that is not returned
SELECT id FROM orders ORDER BY amount * 2 DESC, customer LIMIT 1;
--- before
INSERT INTO orders VALUES (10, 2, 5), (11, 3, 5);
--- change
INSERT INTO orders VALUES (12, 1, 5);
--- delta
-- -1 | 10
-- +1 | 12

--- case: the first rows of a union without copies
--- covers: Q21 ORDER BY with LIMIT over a set operation
SELECT customer AS id FROM orders UNION SELECT id FROM customers ORDER BY id LIMIT 2;
--- before
INSERT INTO orders VALUES (10, 2, 5), (11, 3, 5);
INSERT INTO customers VALUES (2, 'north');
--- change
INSERT INTO customers VALUES (1, 'south');
DELETE FROM orders WHERE id = 10;
--- delta
-- +1 | 1
-- -1 | 3

--- case: DISTINCT before LIMIT
--- covers: Q21 ORDER BY with LIMIT over DISTINCT
SELECT DISTINCT customer FROM orders ORDER BY customer DESC LIMIT 2;
--- before
INSERT INTO orders VALUES (10, 3, 5), (11, 3, 5), (12, 2, 5), (13, 1, 5);
--- change
DELETE FROM orders WHERE id = 12;
--- delta
-- +1 | 1
-- -1 | 2

--- case: a top-N in a common table expression, joined to its own table
--- covers: Q21 ORDER BY with LIMIT in a subquery; Q17 a CTE read twice
WITH best AS (SELECT customer FROM orders GROUP BY customer ORDER BY COUNT(*) DESC, customer LIMIT 1) SELECT o.id FROM orders AS o JOIN best AS b ON b.customer = o.customer;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5), (12, 2, 5);
--- change
INSERT INTO orders VALUES (13, 2, 5), (14, 2, 5);
--- delta
-- -1 | 10
-- -1 | 11
-- +1 | 12
-- +1 | 13
-- +1 | 14

--- case: ORDER BY an ordinal and an alias
--- covers: Q21 ORDER BY an ordinal or an alias
SELECT id, amount % 3 AS rest FROM orders ORDER BY rest DESC, 1 LIMIT 1;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 4);
--- change
UPDATE orders SET amount = 6 WHERE id = 10;
--- delta
-- -1 | 10 | 2
-- +1 | 11 | 1

--- case: some rows, which are the first of all in every refresh
--- covers: Q21 LIMIT without ORDER BY
SELECT customer, amount FROM orders LIMIT 2;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 7), (3, 2, 1);
--- change
INSERT INTO orders VALUES (4, 1, 6);
--- delta
-- -1 | 1 | 7
-- +1 | 1 | 6

--- case: rows that are left out in no order
--- covers: Q21 OFFSET without ORDER BY
SELECT id FROM orders OFFSET 1;
--- before
INSERT INTO orders VALUES (2, 1, 5), (3, 1, 7);
--- change
INSERT INTO orders VALUES (1, 1, 6);
--- delta
-- +1 | 2

--- case: some groups
--- covers: Q21 LIMIT without ORDER BY
SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer LIMIT 1 OFFSET 1;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 2, 7);
--- change
INSERT INTO orders VALUES (3, 2, 6);
--- delta
-- -1 | 2 | 1
-- +1 | 2 | 2

--- case: one row of a subquery, of a definition and of a union
--- covers: Q21 LIMIT without ORDER BY in a subquery
WITH t AS (SELECT id, region FROM customers LIMIT 1)
SELECT id FROM orders WHERE customer IN (SELECT id FROM t) AND amount < (SELECT id FROM customers LIMIT 1 OFFSET 1)
UNION ALL
(SELECT id FROM customers LIMIT 1);
--- before
INSERT INTO customers VALUES (2, 'north'), (9, 'south');
INSERT INTO orders VALUES (1, 2, 5), (3, 1, 1);
--- change
INSERT INTO customers VALUES (1, 'west');
--- delta
-- -1 | 2
-- +1 | 3

--- case: LIMIT ALL limits nothing
--- covers: Q21 LIMIT ALL
SELECT id FROM orders LIMIT ALL;
--- before
INSERT INTO orders VALUES (1, 1, 5);
--- change
INSERT INTO orders VALUES (2, 1, 6);
--- delta
-- +1 | 2

--- case: the first SELECT of a UNION has an order, and its columns other names
--- covers: Q21 ORDER BY with LIMIT
SELECT k, a FROM ((SELECT id AS c, amount AS d FROM orders ORDER BY d DESC, c LIMIT 1) UNION ALL SELECT id, 0 FROM customers) AS t (k, a);
--- before
INSERT INTO orders VALUES (10, 1, 5);
INSERT INTO customers VALUES (1, 'x');
--- change
INSERT INTO orders VALUES (11, 1, 6);
DELETE FROM customers WHERE id = 1;
--- delta
-- -1 | 10 | 5
-- +1 | 11 | 6
-- -1 | 1 | 0

--- case: first of the rows without copies, in an order of an expression
--- covers: Q21 an expression that orders DISTINCT
SELECT DISTINCT customer, amount > 5 AS large FROM orders ORDER BY -customer, large LIMIT 2;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5), (12, 2, 5), (13, 2, 6);
--- change
DELETE FROM orders WHERE id = 12;
INSERT INTO orders VALUES (14, 1, 9);
--- delta
-- +1 | 1 | False
-- -1 | 2 | False

--- case: an order by a column of a table, of rows without copies
--- covers: Q21 an expression that orders DISTINCT
SELECT DISTINCT o.* FROM orders AS o JOIN customers AS c ON c.id = o.customer ORDER BY 3 DESC, abs(O.customer - 2), o.id LIMIT 2;
--- before
INSERT INTO customers VALUES (1, 'n'), (2, 's');
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5), (12, 2, 5), (13, 2, 6);
--- change
DELETE FROM orders WHERE id = 13;
DELETE FROM orders WHERE id = 10;
--- delta
-- +1 | 11 | 1 | 5
-- -1 | 13 | 2 | 6

--- case: the first rows of a union in an order of an expression
--- covers: Q21 an expression that orders a set operation
SELECT customer AS id FROM orders UNION SELECT id FROM customers ORDER BY abs(id - 3), -id LIMIT 2;
--- before
INSERT INTO orders VALUES (10, 2, 5), (11, 4, 5);
INSERT INTO customers VALUES (7, 'north');
--- change
INSERT INTO customers VALUES (3, 'south');
UPDATE orders SET amount = 9 WHERE id = 11;
--- delta
-- +1 | 3
-- -1 | 2

--- case: the first rows of a query in parentheses
--- covers: Q21 an order over parentheses
WITH large AS (SELECT id, amount FROM orders WHERE amount > 1) (SELECT id, amount FROM large) ORDER BY amount % 5, 1 DESC LIMIT 2 OFFSET 1;
--- before
INSERT INTO orders VALUES (10, 2, 5), (11, 4, 10), (12, 4, 6), (13, 1, 1);
--- change
UPDATE orders SET amount = 9 WHERE id = 11;
INSERT INTO orders VALUES (14, 2, 11);
--- delta
-- +1 | 14 | 11
-- -1 | 10 | 5

--- case: the first of several rows of each customer, without copies
--- covers: Q21 an expression that orders DISTINCT; Q14 a scalar subquery in an order
SELECT c.id, (SELECT DISTINCT o.amount FROM orders AS o WHERE o.customer = c.id ORDER BY o.amount % 10, o.amount LIMIT 1) AS first FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'n'), (2, 's');
INSERT INTO orders VALUES (10, 1, 15), (11, 1, 21), (12, 2, 5);
--- change
DELETE FROM orders WHERE id = 11;
INSERT INTO orders VALUES (13, 2, 12);
--- delta
-- +1 | 1 | 15
-- +1 | 2 | 12
-- -1 | 1 | 21
-- -1 | 2 | 5

--- case: an order by all columns
--- covers: Q21 ORDER BY ALL
SELECT amount, customer FROM orders ORDER BY ALL DESC LIMIT 2;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 3, 5), (12, 2, 5);
--- change
INSERT INTO orders VALUES (13, 9, 4), (14, 4, 5);
--- delta
-- +1 | 5 | 4
-- -1 | 5 | 2

--- case: an order by all columns of a union, and of rows without copies in it
--- covers: Q21 ORDER BY ALL
SELECT * FROM (SELECT DISTINCT * FROM customers ORDER BY ALL LIMIT 2) AS c UNION ALL SELECT id, 'order' FROM orders ORDER BY ALL LIMIT 3;
--- before
INSERT INTO customers VALUES (1, 'n'), (1, 'm'), (2, 's');
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5);
--- change
DELETE FROM customers WHERE region = 'n';
INSERT INTO orders VALUES (0, 1, 7);
--- delta
-- +1 | 0 | order
-- +1 | 2 | s
-- -1 | 1 | n
-- -1 | 10 | order

--- case: windows that are defined after an order
--- covers: Q21 ORDER BY before WINDOW
--- spark: DuckDB has WINDOW before ORDER BY
SELECT id, RANK() OVER w AS place FROM orders ORDER BY amount WINDOW w AS (ORDER BY customer) LIMIT 2;
--- before
INSERT INTO orders VALUES (12, 3, 5), (11, 2, 5), (10, 1, 6);
--- change
INSERT INTO orders VALUES (9, 1, 5);
--- delta
-- +1 | 9 | 1
-- -1 | 11 | 2
-- +1 | 11 | 3
-- -1 | 12 | 3

--- case: first rows by a collation
--- covers: Q28 an order by a collation
--- spark: DuckDB has other collations
SELECT id, region FROM customers ORDER BY region COLLATE UTF8_LCASE LIMIT 2;
--- before
INSERT INTO customers VALUES (1, 'b'), (2, 'C'), (3, 'B'), (4, 'A');
--- change
INSERT INTO customers VALUES (5, 'a');
DELETE FROM customers WHERE id = 1;
--- delta
-- -1 | 1 | b
-- +1 | 5 | a

--- case: a number in parentheses is a column, too
--- covers: Q21 ORDER BY an ordinal in parentheses
SELECT customer, amount FROM orders ORDER BY ((2)) DESC LIMIT 1;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 2, 6), (12, 3, 4);
--- change
INSERT INTO orders VALUES (13, 4, 7);
--- delta
-- -1 | 2 | 6
-- +1 | 4 | 7

--- case: ORDER BY all where a column of the table is called so
--- covers: Q21 ORDER BY a column that is called all
--- spark: DuckDB orders by all outputs
SELECT v, id FROM (SELECT customer AS `all`, amount AS v, id FROM orders) AS t ORDER BY all LIMIT 2;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 5);
--- change
INSERT INTO orders VALUES (4, 0, 9);
--- delta
-- -1 | 6 | 2
-- +1 | 9 | 4

--- case: ORDER BY all beside others
--- covers: Q21 ORDER BY a column that is called all
--- spark: DuckDB orders by all outputs
SELECT v, id FROM (SELECT customer AS `all`, amount AS v, id FROM orders) AS t ORDER BY v, all DESC LIMIT 1;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 5);
--- change
INSERT INTO orders VALUES (4, 3, 5);
--- delta
-- -1 | 5 | 3
-- +1 | 5 | 4
