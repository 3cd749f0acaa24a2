-- Joins by USING and NATURAL: what is merged, what * and t.* stand for, and what names mean.

--- case: all columns of the left table, whose key is not its first column
--- covers: Q2 t.* of a join by names
SELECT c.*, o.amount FROM (SELECT region, id FROM customers) AS c LEFT JOIN orders AS o USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- +1 | 2 | d | NULL
-- -1 | 3 | b | NULL
-- +1 | 3 | b | 8
-- +1 | 9 | e | 9

--- case: all columns of the right table of a LEFT JOIN by names
--- covers: Q2 t.* of a join by names
SELECT o.amount, c.* FROM orders AS o LEFT JOIN (SELECT region, id FROM customers) AS c USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- -1 | 6 | NULL | NULL
-- +1 | 8 | 3 | b
-- +1 | 9 | 9 | e

--- case: all columns but one of a join by names
--- covers: Q2 t.* of a join by names
SELECT c.* EXCEPT (c.id), o.* EXCEPT (customer)
FROM (SELECT region, id FROM customers) AS c FULL JOIN orders AS o USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- -1 | NULL | 2 | 6
-- -1 | b | NULL | NULL
-- +1 | b | 3 | 8
-- +1 | d | NULL | NULL
-- +1 | e | 9 | 9

--- case: * of a FULL JOIN by names
--- covers: Q2 * of a join by names
SELECT * FROM (SELECT region, id FROM customers) AS c FULL JOIN orders AS o USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- -1 | 2 | NULL | 3 | 6
-- +1 | 2 | d | NULL | NULL
-- -1 | 3 | b | NULL | NULL
-- +1 | 3 | b | 6 | 8
-- +1 | 9 | e | 2 | 9

--- case: * but the merged column
--- covers: Q2 * of a join by names
SELECT * EXCEPT (id) FROM (SELECT region, id FROM customers) AS c RIGHT JOIN orders AS o USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- -1 | NULL | 3 | 6
-- +1 | b | 6 | 8
-- +1 | e | 2 | 9

--- case: the columns of both sides that a FULL JOIN merged
--- covers: Q2 a merged column, and its sides
SELECT id, c.id AS left_id, o.id AS right_id, region
FROM (SELECT region, id FROM customers) AS c FULL JOIN orders AS o USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- -1 | 2 | NULL | 2 | NULL
-- +1 | 2 | 2 | NULL | d
-- -1 | 3 | 3 | NULL | b
-- +1 | 3 | 3 | 3 | b
-- +1 | 9 | 9 | 9 | e

--- case: a LEFT JOIN by names after a FULL JOIN
--- covers: Q2 a join by names after RIGHT or FULL
SELECT id, region, amount, n
FROM (SELECT region, id FROM customers) AS c FULL JOIN orders AS o USING (id) LEFT JOIN (SELECT customer AS id, amount AS n FROM orders WHERE amount > 4) AS d USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- -1 | 2 | NULL | 6 | NULL
-- +1 | 2 | d | NULL | 9
-- -1 | 3 | b | NULL | 6
-- +1 | 3 | b | 8 | NULL
-- -1 | 6 | c | NULL | NULL
-- +1 | 6 | c | NULL | 8
-- +1 | 9 | e | 9 | NULL

--- case: a JOIN by names after a FULL JOIN
--- covers: Q2 a join by names after RIGHT or FULL
SELECT id, region, amount, n
FROM (SELECT region, id FROM customers) AS c FULL JOIN orders AS o USING (id) JOIN (SELECT customer AS id, amount AS n FROM orders WHERE amount > 4) AS d USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- +1 | 2 | d | NULL | 9
-- -1 | 3 | b | NULL | 6
-- +1 | 6 | c | NULL | 8

--- case: a SEMI JOIN by names after a FULL JOIN
--- covers: Q2 a join by names after RIGHT or FULL
SELECT id, region, amount
FROM (SELECT region, id FROM customers) AS c FULL JOIN orders AS o USING (id) LEFT SEMI JOIN (SELECT customer AS id, amount AS n FROM orders WHERE amount > 4) AS d USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- +1 | 2 | d | NULL
-- -1 | 3 | b | NULL
-- +1 | 6 | c | NULL

--- case: an ANTI JOIN by names after a FULL JOIN
--- covers: Q2 a join by names after RIGHT or FULL
SELECT id, region, amount
FROM (SELECT region, id FROM customers) AS c FULL JOIN orders AS o USING (id) LEFT ANTI JOIN (SELECT customer AS id, amount AS n FROM orders WHERE amount > 4) AS d USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- -1 | 2 | NULL | 6
-- +1 | 3 | b | 8
-- -1 | 6 | c | NULL
-- +1 | 9 | e | 9

--- case: a LEFT JOIN by names after a RIGHT JOIN
--- covers: Q2 a join by names after RIGHT or FULL
SELECT id, region, amount, n
FROM (SELECT region, id FROM customers) AS c RIGHT JOIN orders AS o USING (id) LEFT JOIN (SELECT customer AS id, amount AS n FROM orders WHERE amount > 4) AS d USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- -1 | 2 | NULL | 6 | NULL
-- +1 | 3 | b | 8 | NULL
-- +1 | 9 | e | 9 | NULL

--- case: a RIGHT JOIN by names after a RIGHT JOIN
--- covers: Q2 a join by names after RIGHT or FULL
SELECT id, region, amount, n
FROM (SELECT region, id FROM customers) AS c RIGHT JOIN orders AS o USING (id) RIGHT JOIN (SELECT customer AS id, amount AS n FROM orders WHERE amount > 4) AS d USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- +1 | 2 | NULL | NULL | 9
-- -1 | 3 | NULL | NULL | 6
-- +1 | 6 | NULL | NULL | 8

--- case: three tables in FULL JOINs by names, and one more
--- covers: Q2 a join by names after RIGHT or FULL
SELECT id, region, amount, n, y
FROM (SELECT region, id FROM customers) AS c FULL JOIN orders AS o USING (id) FULL JOIN (SELECT customer AS id, amount AS n FROM orders WHERE amount > 4) AS d USING (id) LEFT JOIN (SELECT customer AS id, id AS y FROM orders) AS e USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- -1 | 2 | NULL | 6 | NULL | NULL
-- +1 | 2 | d | NULL | 9 | 9
-- -1 | 3 | b | NULL | 6 | 2
-- +1 | 3 | b | 8 | NULL | NULL
-- -1 | 6 | c | NULL | NULL | NULL
-- +1 | 6 | c | NULL | 8 | 3
-- +1 | 9 | e | 9 | NULL | NULL

--- case: NATURAL LEFT JOIN after NATURAL FULL JOIN
--- covers: Q2 a join by names after RIGHT or FULL
SELECT id, region, amount, n
FROM (SELECT region, id FROM customers) AS c NATURAL FULL JOIN orders AS o NATURAL LEFT JOIN (SELECT customer AS id, amount AS n FROM orders WHERE amount > 4) AS d;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- -1 | 2 | NULL | 6 | NULL
-- +1 | 2 | d | NULL | 9
-- -1 | 3 | b | NULL | 6
-- +1 | 3 | b | 8 | NULL
-- -1 | 6 | c | NULL | NULL
-- +1 | 6 | c | NULL | 8
-- +1 | 9 | e | 9 | NULL

--- case: groups by the merged column of three tables
--- covers: Q2 groups by a merged column
SELECT id, COUNT(*) AS rows, SUM(n) AS total
FROM (SELECT region, id FROM customers) AS c FULL JOIN orders AS o USING (id) LEFT JOIN (SELECT customer AS id, amount AS n FROM orders WHERE amount > 4) AS d USING (id) GROUP BY id;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- -1 | 2 | 1 | NULL
-- +1 | 2 | 1 | 9
-- +1 | 3 | 1 | NULL
-- -1 | 3 | 1 | 6
-- -1 | 6 | 1 | NULL
-- +1 | 6 | 1 | 8
-- +1 | 9 | 1 | NULL

--- case: groups by a merged column and HAVING over it
--- covers: Q2 groups by a merged column
SELECT SUM(amount) AS id, MAX(region) AS region
FROM (SELECT region, id FROM customers) AS c FULL JOIN orders AS o USING (id) GROUP BY id HAVING id > 1;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- -1 | NULL | b
-- +1 | NULL | d
-- -1 | 6 | NULL
-- +1 | 8 | b
-- +1 | 9 | e

--- case: HAVING over an output called like a merged column
--- covers: Q2 groups by a merged column
SELECT amount AS id, COUNT(region) AS n
FROM (SELECT region, id FROM customers) AS c FULL JOIN orders AS o USING (id) GROUP BY amount HAVING id > 5;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- -1 | 6 | 0
-- +1 | 8 | 1
-- +1 | 9 | 1

--- case: a merged column in WHERE
--- covers: Q2 a merged column in a clause
SELECT region, amount
FROM (SELECT region, id FROM customers) AS c FULL JOIN orders AS o USING (id) WHERE id BETWEEN 2 AND 6;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- -1 | NULL | 6
-- -1 | b | NULL
-- +1 | b | 8
-- +1 | d | NULL

--- case: a merged column in ON of a later join
--- covers: Q2 a merged column in a clause
SELECT id, n
FROM (SELECT region, id FROM customers) AS c FULL JOIN orders AS o USING (id) LEFT JOIN (SELECT customer, amount AS n FROM orders) AS d ON d.customer = id;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- -1 | 2 | NULL
-- +1 | 2 | 9
-- +1 | 3 | NULL
-- -1 | 3 | 6
-- -1 | 6 | NULL
-- +1 | 6 | 8
-- +1 | 9 | NULL

--- case: a merged column in a correlated subquery
--- covers: Q2 a merged column in a clause
SELECT id, region
FROM (SELECT region, id FROM customers) AS c FULL JOIN orders AS o USING (id) WHERE EXISTS (SELECT 1 FROM (SELECT customer FROM orders) AS s WHERE s.customer = id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- +1 | 2 | d
-- -1 | 3 | b
-- +1 | 6 | c

--- case: a merged column in a scalar subquery
--- covers: Q2 a merged column in a clause
SELECT id, (SELECT MAX(s.n)
FROM (SELECT customer, amount AS n FROM orders) AS s WHERE s.customer = id) AS most FROM (SELECT region, id FROM customers) AS c FULL JOIN orders AS o USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- -1 | 2 | NULL
-- +1 | 2 | 9
-- +1 | 3 | NULL
-- -1 | 3 | 6
-- -1 | 6 | NULL
-- +1 | 6 | 8
-- +1 | 9 | NULL

--- case: a merged column in a LATERAL query
--- covers: Q2 a merged column in a clause
SELECT id, n
FROM (SELECT region, id FROM customers) AS c FULL JOIN orders AS o USING (id), LATERAL (SELECT s.amount AS n FROM orders AS s WHERE s.customer = id) AS l;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- +1 | 9 | 5

--- case: a merged column in a LATERAL VIEW
--- covers: Q2 a merged column in a clause
SELECT id, e
FROM (SELECT region, id FROM customers) AS c FULL JOIN orders AS o USING (id) LATERAL VIEW explode(array(id, amount)) v AS e;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- +1 | 2 | NULL
-- -1 | 2 | 6
-- -1 | 3 | NULL
-- +1 | 3 | 8
-- +2 | 9 | 9

--- case: a merged column in a window
--- covers: Q2 a merged column in a clause
SELECT id, amount, COUNT(amount) OVER (PARTITION BY id) AS n
FROM (SELECT region, id FROM customers) AS c FULL JOIN orders AS o USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- +1 | 2 | NULL | 0
-- -1 | 2 | 6 | 1
-- -1 | 3 | NULL | 0
-- +1 | 3 | 8 | 1
-- +1 | 9 | 9 | 1

--- case: the first rows by a merged column
--- covers: Q2 a merged column in a clause
SELECT id, region
FROM (SELECT region, id FROM customers) AS c FULL JOIN orders AS o USING (id) ORDER BY id DESC LIMIT 2;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- -1 | 4 | NULL
-- +1 | 9 | e

--- case: the first rows by an output called like a merged column
--- covers: Q2 a merged column in a clause
SELECT amount AS id, region
FROM (SELECT region, id FROM customers) AS c FULL JOIN orders AS o USING (id) ORDER BY id DESC NULLS LAST LIMIT 2;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- -1 | 6 | NULL
-- -1 | 7 | NULL
-- +1 | 8 | b
-- +1 | 9 | e

--- case: stars of a join by names in an expression
--- covers: Q2 a star in an expression over a join by names
--- spark: DuckDB takes no star in an expression
SELECT id, to_json(struct(c.*)) AS one, to_json(struct(*)) AS every
FROM (SELECT region, id FROM customers) AS c FULL JOIN orders AS o USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- +1 | 2 | {"id":2,"region":"d"} | {"id":2,"region":"d"}
-- -1 | 2 | {} | {"id":2,"customer":3,"amount":6}
-- +1 | 3 | {"id":3,"region":"b"} | {"id":3,"region":"b","customer":6,"amount":8}
-- -1 | 3 | {"id":3,"region":"b"} | {"id":3,"region":"b"}
-- +1 | 9 | {"id":9,"region":"e"} | {"id":9,"region":"e","customer":2,"amount":9}

--- case: * of a query with t.* of a join by names
--- covers: Q2 t.* of a join by names
SELECT *
FROM (SELECT c.*, o.amount FROM (SELECT region, id FROM customers) AS c LEFT JOIN orders AS o USING (id)) AS q WHERE amount > 4;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- +1 | 3 | b | 8
-- +1 | 9 | e | 9

--- case: WITH t.* of a join by names, joined by names
--- covers: Q2 t.* of a join by names
WITH w AS (SELECT c.*, o.amount
FROM (SELECT region, id FROM customers) AS c FULL JOIN orders AS o USING (id)) SELECT w.*, n FROM w NATURAL LEFT JOIN (SELECT customer AS id, amount AS n FROM orders WHERE amount > 4) AS d;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- -1 | NULL | NULL | 6 | NULL
-- +1 | 2 | d | NULL | 9
-- -1 | 3 | b | NULL | 6
-- +1 | 3 | b | 8 | NULL
-- -1 | 6 | c | NULL | NULL
-- +1 | 6 | c | NULL | 8
-- +1 | 9 | e | 9 | NULL

--- case: a join in parentheses by names after a FULL JOIN
--- covers: Q2 a join by names after RIGHT or FULL
SELECT id, region, amount, n
FROM (SELECT region, id FROM customers) AS c LEFT JOIN (orders AS o FULL JOIN (SELECT customer AS id, amount AS n FROM orders WHERE amount > 4) AS d USING (id)) USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- +1 | 2 | d | NULL | 9
-- -1 | 3 | b | NULL | 6
-- +1 | 3 | b | 8 | NULL
-- -1 | 6 | c | NULL | NULL
-- +1 | 6 | c | NULL | 8
-- +1 | 9 | e | 9 | NULL

--- case: a SEMI JOIN by names before a RIGHT JOIN by names
--- covers: Q2 SEMI and ANTI JOIN before a join by names
SELECT *
FROM (SELECT region, id FROM customers) AS c LEFT SEMI JOIN orders AS o USING (id) RIGHT JOIN (SELECT customer AS id, amount AS n FROM orders WHERE amount > 4) AS d USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- +1 | 2 | NULL | 9
-- -1 | 3 | NULL | 6
-- +1 | 6 | NULL | 8

--- case: an ANTI JOIN by names before a FULL JOIN by names
--- covers: Q2 SEMI and ANTI JOIN before a join by names
SELECT *
FROM (SELECT region, id FROM customers) AS c LEFT ANTI JOIN orders AS o USING (id) FULL JOIN (SELECT customer AS id, amount AS n FROM orders WHERE amount > 4) AS d USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- +1 | 2 | d | 9
-- -1 | 3 | b | 6
-- -1 | 6 | c | NULL
-- +1 | 6 | c | 8

--- case: both sides of UNION ALL join by names
--- covers: Q2 t.* of a join by names
--- spark: DuckDB leaves the key of t.* where the table has it, and UNION ALL goes by place
SELECT c.*, n
FROM (SELECT region, id FROM customers) AS c FULL JOIN (SELECT customer AS id, amount AS n FROM orders WHERE amount > 4) AS d USING (id) UNION ALL SELECT o.id, MAX(region), SUM(amount) FROM orders AS o LEFT JOIN customers USING (id) GROUP BY o.id;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- -1 | 2 | NULL | 6
-- +1 | 2 | d | 9
-- +1 | 3 | b | NULL
-- -1 | 3 | b | 6
-- +1 | 3 | b | 8
-- -1 | 6 | c | NULL
-- +1 | 6 | c | 8
-- +1 | 9 | e | NULL
-- +1 | 9 | e | 9

--- case: names of another case than the columns
--- covers: Q2 names in another case
SELECT Region, O.* FROM (SELECT region, id FROM customers) AS c FULL JOIN orders AS o USING (Id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- -1 | NULL | 2 | 3 | 6
-- -1 | b | NULL | NULL | NULL
-- +1 | b | 3 | 6 | 8
-- +1 | d | NULL | NULL | NULL
-- +1 | e | 9 | 2 | 9

--- case: a join by names of columns of two types
--- covers: Q2 types of a merged column
SELECT id, region
FROM (SELECT CAST(id AS BIGINT) + 4000000000 AS id, region FROM customers) AS c FULL JOIN orders AS o USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- -1 | 2 | NULL
-- +1 | 3 | NULL
-- +1 | 4000000002 | d
-- +1 | 4000000009 | e
-- +1 | 9 | NULL

--- case: of two columns on the left, USING takes the first
--- covers: Q2 USING over two columns of one name
--- spark: DuckDB calls the column ambiguous
SELECT o.amount, c.region, d.n
FROM orders AS o CROSS JOIN (SELECT region, id FROM customers) AS c LEFT JOIN (SELECT customer AS id, amount AS n FROM orders WHERE amount > 4) AS d USING (id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- +1 | 5 | d | 5
-- +1 | 5 | e | 5
-- -1 | 6 | a | NULL
-- -1 | 6 | b | NULL
-- -1 | 6 | c | NULL
-- +1 | 7 | d | NULL
-- +1 | 7 | e | NULL
-- +1 | 8 | a | NULL
-- +1 | 8 | b | NULL
-- +1 | 8 | c | NULL
-- +1 | 8 | d | NULL
-- +1 | 8 | e | NULL
-- +1 | 9 | a | NULL
-- +1 | 9 | b | NULL
-- +1 | 9 | c | NULL
-- +1 | 9 | d | NULL
-- +1 | 9 | e | NULL

--- case: groups by a merged column that is not returned
--- covers: Q2 groups by a merged column
SELECT COUNT(*) AS n, MAX(region) AS region
FROM (SELECT region, id FROM customers) AS c FULL JOIN orders AS o USING (id) GROUP BY id;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- -1 | 1 | NULL
-- +1 | 1 | d
-- +1 | 1 | e

--- case: groups by a merged column and by the column of one side, neither returned
--- covers: Q2 groups by a merged column
SELECT SUM(o.amount) AS total
FROM (SELECT region, id FROM customers) AS c FULL JOIN orders AS o USING (id) GROUP BY c.id, id;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- -1 | 6
-- +1 | 8
-- +1 | 9

--- case: groups by an expression over the merged column of three tables
--- covers: Q2 groups by a merged column
SELECT COUNT(*) AS rows, SUM(n) AS total
FROM (SELECT region, id FROM customers) AS c FULL JOIN orders AS o USING (id) FULL JOIN (SELECT customer AS id, amount AS n FROM orders WHERE amount > 4) AS d USING (id) GROUP BY ID % 3;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- +1 | 2 | 16
-- -1 | 2 | 6
-- -1 | 2 | 7
-- +1 | 3 | 8

--- case: groups by COALESCE of both sides of a FULL JOIN by names
--- covers: Q2 groups by a merged column
SELECT COUNT(*) AS n
FROM (SELECT region, id FROM customers) AS c FULL JOIN orders AS o USING (id) GROUP BY COALESCE(c.id, o.id);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- +1 | 1
