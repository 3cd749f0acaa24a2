--- case: UNION drops what UNION ALL would keep
--- covers: Q11 UNION
SELECT customer AS id FROM orders UNION SELECT id FROM customers;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
--- delta
-- +1 | 2

--- case: a row of UNION stays while either side has it
--- covers: Q11 UNION
SELECT customer AS id FROM orders UNION SELECT id FROM customers;
--- before
INSERT INTO orders VALUES (10, 1, 5);
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
--- change
DELETE FROM orders;
DELETE FROM customers WHERE id = 2;
--- delta
-- -1 | 2

--- case: UNION ALL keeps every copy
--- covers: Q11 UNION ALL; Q26 copies of a union
SELECT customer AS id FROM orders UNION ALL SELECT id FROM customers;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO customers VALUES (1, 'north'), (1, 'south');
--- delta
-- +2 | 1

--- case: a row moves from one side to the other and nothing is seen of it
--- covers: Q11 UNION ALL
SELECT customer AS id FROM orders UNION ALL SELECT id FROM customers;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
DELETE FROM orders;
INSERT INTO customers VALUES (1, 'north');
--- delta

--- case: a table united with itself
--- covers: Q11 UNION ALL
SELECT id, amount FROM orders WHERE amount > 1 UNION ALL SELECT customer, amount FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
UPDATE orders SET amount = 1;
--- delta
-- -1 | 1 | 5
-- +1 | 1 | 1
-- -1 | 10 | 5

--- case: three sides, the last of which drops copies
--- covers: Q11 nested and mixed
SELECT id FROM orders UNION ALL SELECT customer FROM orders UNION SELECT id FROM customers;
--- before
INSERT INTO orders VALUES (1, 1, 5);
--- change
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (2, 'south');
--- delta
-- +1 | 2

--- case: three sides, the last of which keeps copies
--- covers: Q11 nested and mixed
SELECT id FROM orders UNION SELECT customer FROM orders UNION ALL SELECT id FROM customers;
--- before
INSERT INTO orders VALUES (1, 1, 5);
--- change
INSERT INTO customers VALUES (1, 'north'), (2, 'south'), (2, 'south');
INSERT INTO orders VALUES (1, 1, 6);
--- delta
-- +1 | 1
-- +2 | 2

--- case: parentheses decide what drops copies
--- covers: Q11 nested and mixed
SELECT id FROM orders UNION ALL (SELECT customer FROM orders UNION SELECT id FROM customers);
--- before
INSERT INTO orders VALUES (1, 1, 5);
--- change
INSERT INTO customers VALUES (1, 'north');
INSERT INTO orders VALUES (1, 1, 6);
--- delta
-- +1 | 1

--- case: UNION DISTINCT is UNION
--- covers: Q11 UNION
SELECT id FROM orders UNION DISTINCT SELECT id FROM customers ORDER BY id;
--- before
INSERT INTO orders VALUES (1, 1, 5);
--- change
INSERT INTO customers VALUES (1, 'north'), (2, 'north');
--- delta
-- +1 | 2

--- case: integers of two widths meet in the wider
--- covers: Q11 UNION of two types
SELECT account AS number, note FROM ledger UNION ALL SELECT id, region FROM customers;
--- before
INSERT INTO ledger VALUES (1, 1, 'x');
--- change
INSERT INTO customers VALUES (1, 'x');
--- delta
-- +1 | 1 | x

--- case: UNION of aggregates
--- covers: Q11 UNION ALL of aggregates
SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer UNION ALL SELECT id, COUNT(*) FROM customers GROUP BY id;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
INSERT INTO customers VALUES (1, 'north');
INSERT INTO orders VALUES (11, 1, 5);
--- delta
-- +1 | 1 | 2

--- case: a total over nothing is a row of a union
--- covers: Q11 UNION ALL of aggregates; Q28 an empty input
SELECT SUM(amount) AS total FROM orders UNION ALL SELECT COUNT(*) FROM customers;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
DELETE FROM orders;
--- delta
-- -1 | 5
-- +1 | NULL

--- case: groups above a union
--- covers: Q11 a set operation in FROM
SELECT id, COUNT(*) AS n, SUM(amount) AS total FROM (SELECT id, amount FROM orders UNION ALL SELECT id, 0 FROM customers) AS t GROUP BY id;
--- before
INSERT INTO orders VALUES (1, 1, 5);
--- change
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
DELETE FROM orders;
--- delta
-- -1 | 1 | 1 | 5
-- +1 | 1 | 1 | 0
-- +1 | 2 | 1 | 0

--- case: a union joined
--- covers: Q11 a set operation in FROM; Q3 a key changes and its partner comes
SELECT c.region, t.amount FROM (SELECT customer, amount FROM orders UNION SELECT id, amount FROM orders) AS t JOIN customers AS c ON c.id = t.customer;
--- before
INSERT INTO orders VALUES (1, 1, 5);
INSERT INTO customers VALUES (1, 'north');
--- change
UPDATE orders SET id = 2;
INSERT INTO customers VALUES (2, 'south');
--- delta
-- +1 | south | 5

--- case: constants name the sides
--- covers: Q11 UNION ALL with constants
SELECT 'order' AS kind, id FROM orders UNION ALL SELECT 'customer', id FROM customers;
--- before
INSERT INTO orders VALUES (1, 1, 5);
--- change
INSERT INTO customers VALUES (1, 'north');
--- delta
-- +1 | customer | 1

--- case: NULL on one side takes the type of the other
--- covers: Q11 UNION of two types; Q28 NULL in a set operation
SELECT id, CAST(NULL AS STRING) AS region FROM orders UNION ALL SELECT NULL, region FROM customers;
--- before
INSERT INTO orders VALUES (1, 1, 5);
--- change
INSERT INTO customers VALUES (1, 'north');
--- delta
-- +1 | NULL | north

--- case: decimals of two scales meet, whichever side changed
--- covers: Q11 UNION of two types
SELECT CAST(x AS STRING) AS text FROM (SELECT price AS x FROM sales UNION ALL SELECT CAST(total AS DECIMAL(20, 4)) FROM ledger) AS t;
--- before
INSERT INTO ledger VALUES (1, 1, 'x');
--- change
INSERT INTO sales (price) VALUES (1.5);
--- delta
-- +1 | 1.5000

--- case: integers and decimals meet, whichever side changed
--- covers: Q11 UNION of two types
SELECT CAST(x AS STRING) AS text, COUNT(*) AS n FROM (SELECT id AS x FROM orders UNION SELECT price FROM sales) AS t GROUP BY CAST(x AS STRING);
--- before
INSERT INTO sales (price) VALUES (1.5);
--- change
INSERT INTO orders VALUES (1, 1, 1);
--- delta
-- +1 | 1.00 | 1

--- case: an unchanged side keeps the type that only the query gives it
--- covers: Q11 UNION of two types
SELECT CAST(x AS STRING) AS text FROM (SELECT price AS x FROM sales UNION ALL SELECT round(CAST(total AS DECIMAL(20, 4)), 1) FROM ledger) AS t;
--- before
INSERT INTO ledger VALUES (1, 1, 'x');
--- change
INSERT INTO sales (price) VALUES (1.5);
--- delta
-- +1 | 1.50

--- case: one column twice in a later operand
--- covers: Q11 UNION ALL of operands with other names
SELECT id, customer FROM orders UNION ALL SELECT id, id FROM customers;
--- before
INSERT INTO orders VALUES (1, 2, 5);
--- change
INSERT INTO customers VALUES (3, 'x');
--- delta
-- +1 | 3 | 3

--- case: a union in parentheses after GROUP BY ALL
--- covers: Q11 UNION
SELECT customer, COUNT(*) AS n FROM orders GROUP BY ALL UNION (SELECT id, 1 FROM customers);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
INSERT INTO customers VALUES (1, 'x'), (2, 'y');
--- change
INSERT INTO orders VALUES (3, 2, 7);
DELETE FROM orders WHERE id = 2;
--- delta
-- -1 | 1 | 2
