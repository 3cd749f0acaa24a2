--- case: a row that comes is added and a row that goes is taken away
--- covers: Q1 projection
SELECT id, customer, amount FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6);
--- change
DELETE FROM orders WHERE id = 10;
INSERT INTO orders VALUES (12, 2, 7);
--- delta
-- -1 | 10 | 1 | 5
-- +1 | 12 | 2 | 7

--- case: of three equal rows two go
--- covers: Q26 copies of a row
SELECT * FROM customers;
--- before
INSERT INTO customers VALUES (1, 'north'), (1, 'north'), (1, 'north');
--- change
DELETE FROM customers;
INSERT INTO customers VALUES (1, 'north');
--- delta
-- -2 | 1 | north

--- case: a row that becomes equal to another is one more copy
--- covers: Q26 copies of a row
SELECT * FROM customers;
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'north'), (NULL, NULL);
--- change
UPDATE customers SET id = 2 WHERE id = 1;
INSERT INTO customers VALUES (NULL, NULL);
--- delta
-- -1 | 1 | north
-- +1 | 2 | north
-- +1 | NULL | NULL

--- case: an update of a column that the query does not read changes nothing
--- covers: Q1 projection; R9 a column that the query does not read
SELECT id, customer FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
UPDATE orders SET amount = 6;
--- delta

--- case: the source is emptied and filled anew in one window
--- covers: Q1 projection; R8 a source that is emptied and filled again
SELECT id, amount FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 6);
--- change
DELETE FROM orders;
INSERT INTO orders VALUES (11, 1, 6), (12, 1, 7);
--- delta
-- -1 | 10 | 5
-- +1 | 12 | 7

--- case: columns of every type are told apart by value, and NULL equals NULL
--- covers: Q28 every type, with NULLs
SELECT product, price, mass, sold, paid FROM sales;
--- before
INSERT INTO sales VALUES ('tea', 1.50, 0.5, '2013-01-31', true), (NULL, NULL, NULL, NULL, NULL);
--- change
UPDATE sales SET price = 1.51 WHERE product = 'tea';
DELETE FROM sales WHERE product IS NULL;
--- delta
-- -1 | NULL | NULL | NULL | NULL | NULL
-- -1 | tea | 1.50 | 0.5 | 2013-01-31 | True
-- +1 | tea | 1.51 | 0.5 | 2013-01-31 | True

--- case: names with capitals, dots, spaces and reserved words stay as they are written
--- covers: Q1 names as they are written
SELECT `Order`, `a.b` AS `Dotted.Name`, `two words` AS `select`, upper AS Loud FROM odd;
--- before
INSERT INTO odd VALUES (1, 2, 'x', 3);
--- change
UPDATE odd SET `a.b` = 5;
--- delta
-- -1 | 1 | 2 | x | 3
-- +1 | 1 | 5 | x | 3

--- case: a star keeps the names of the source
--- covers: Q1 names as they are written; Q1 a star
SELECT * EXCEPT (`two words`) FROM odd AS O;
--- before
--- change
INSERT INTO odd VALUES (1, 2, 'x', 3);
--- delta
-- +1 | 1 | 2 | 3

--- case: column names ignore case
--- covers: Q1 names as they are written
SELECT ID, o.Amount AS amt FROM orders AS O WHERE AMOUNT > 1;
--- before
--- change
INSERT INTO orders VALUES (1, 2, 3);
--- delta
-- +1 | 1 | 3

--- case: ORDER BY at the root decides nothing
--- covers: Q21 ORDER BY without LIMIT
SELECT id, amount FROM orders ORDER BY amount DESC, id;
--- before
INSERT INTO orders VALUES (1, 1, 1);
--- change
INSERT INTO orders VALUES (2, 2, 2);
--- delta
-- +1 | 2 | 2
