--- case: more than all of a set that loses its greatest
--- covers: Q13 > ALL (subquery)
SELECT id FROM orders WHERE amount > ALL (SELECT id FROM customers);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 8);
INSERT INTO customers VALUES (7, 'north'), (2, 'north');
--- change
DELETE FROM customers WHERE id = 7;
--- delta
-- +1 | 10

--- case: all of nothing is true, any of nothing is false
--- covers: Q13 ALL and ANY over no rows
SELECT id, amount > ALL (SELECT id FROM customers) AS above, amount > ANY (SELECT id FROM customers) AS over FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, NULL);
INSERT INTO customers VALUES (7, 'north');
--- change
DELETE FROM customers;
--- delta
-- -1 | 10 | False | False
-- +1 | 10 | True | False
-- -1 | 11 | NULL | NULL
-- +1 | 11 | True | False

--- case: a NULL in the set makes the answer unknown unless a row decides
--- covers: Q13 ALL and ANY with NULLs
SELECT id, amount >= ALL (SELECT id FROM customers) AS above, amount < ANY (SELECT id FROM customers) AS under FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 8);
INSERT INTO customers VALUES (7, 'north');
--- change
INSERT INTO customers VALUES (NULL, 'north');
--- delta
-- +1 | 11 | NULL | NULL
-- -1 | 11 | True | False

--- case: equal to any is IN, different from all is NOT IN
--- covers: Q13 = ANY and <> ALL
SELECT id, amount = ANY (SELECT id FROM customers) AS there, amount <> ALL (SELECT id FROM customers) AS absent FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 8);
INSERT INTO customers VALUES (5, 'north');
--- change
INSERT INTO customers VALUES (NULL, 'north');
DELETE FROM customers WHERE id = 5;
--- delta
-- +1 | 10 | NULL | NULL
-- -1 | 10 | True | False
-- -1 | 11 | False | True
-- +1 | 11 | NULL | NULL
--- delta of Spark
-- +1 | 10 | False | False
-- -1 | 10 | True | False
-- -1 | 11 | False | True
-- +1 | 11 | False | False

--- case: equal to one that is neither the least nor the greatest
--- covers: Q13 = ANY and <> ALL
SELECT id, amount = ANY (SELECT id FROM customers) AS there, amount <> ALL (SELECT id FROM customers) AS absent FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 4);
INSERT INTO customers VALUES (1, 'north'), (5, 'north'), (9, 'north');
--- change
DELETE FROM customers WHERE id = 5;
--- delta
-- +1 | 10 | False | True
-- -1 | 10 | True | False

--- case: equal to all and different from any
--- covers: Q13 = ALL and <> ANY
SELECT id, amount = ALL (SELECT id FROM customers) AS only_one, amount <> ANY (SELECT id FROM customers) AS some_other FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5);
INSERT INTO customers VALUES (5, 'north'), (5, 'south');
--- change
INSERT INTO customers VALUES (6, 'north');
--- delta
-- +1 | 10 | False | True
-- -1 | 10 | True | False

--- case: any of the rows that belong to the row
--- covers: Q13 ANY of a correlated subquery
SELECT c.id FROM customers AS c WHERE c.id <= ANY (SELECT o.amount FROM orders AS o WHERE o.customer = c.id);
--- before
INSERT INTO customers VALUES (1, 'north'), (2, 'south');
INSERT INTO orders VALUES (10, 1, 1), (11, 2, 1);
--- change
UPDATE orders SET customer = 2, amount = 2 WHERE id = 10;
--- delta
-- -1 | 1
-- +1 | 2

--- case: more than all of the first rows
--- covers: Q13 ALL of a top-N
SELECT id FROM orders WHERE amount > ALL (SELECT id FROM customers ORDER BY id LIMIT 1);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 1);
INSERT INTO customers VALUES (1, 'north'), (7, 'north');
--- change
DELETE FROM customers WHERE id = 1;
--- delta
-- -1 | 10

--- case: more than all of an aggregate
--- covers: Q13 ALL of an aggregate
SELECT id FROM orders WHERE amount >= ALL (SELECT MAX(id) FROM customers);
--- before
INSERT INTO orders VALUES (10, 1, 3), (11, 1, 6);
INSERT INTO customers VALUES (2, 'north');
--- change
INSERT INTO customers VALUES (6, 'north');
--- delta
-- -1 | 10

--- case: more than all of the groups
--- covers: Q13 ALL over groups
SELECT id FROM orders WHERE amount > ALL (SELECT id FROM customers GROUP BY id);
--- before
INSERT INTO orders VALUES (10, 1, 3), (11, 1, 6);
INSERT INTO customers VALUES (1, 'north'), (2, 'north'), (2, 'south');
--- change
INSERT INTO customers VALUES (4, 'north');
--- delta
-- -1 | 10

--- case: SOME and ALL under OR
--- covers: Q13 ALL under OR
SELECT id FROM orders WHERE id = 11 OR NOT amount <= ALL (SELECT id FROM customers);
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 1), (12, 1, 9);
INSERT INTO customers VALUES (7, 'north');
--- change
INSERT INTO customers VALUES (4, 'south');
--- delta
-- +1 | 10

--- case: any of an array
--- covers: Q1 op ANY/ALL (array)
--- spark: DuckDB has no EXISTS over a list
SELECT id, amount = ANY (array(1, customer)) AS one, amount > ANY (array(2, customer)) AS above FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 1), (11, 2, 3);
--- change
UPDATE orders SET amount = amount + 1;
--- delta
-- -1 | 10 | True | False
-- +1 | 10 | False | True

--- case: ANY of a subquery that compares with a constant of the row
--- covers: Q13 < ANY
SELECT 1 AS c0 FROM (SELECT 1 AS c1 FROM customers) AS w, (SELECT DISTINCT d.region AS c0, ABS(d.id) AS c1 FROM customers AS d) AS h WHERE h.c1 < ANY (SELECT ABS(v.id) AS v FROM customers AS v WHERE v.id = w.c1);
--- before
INSERT INTO customers VALUES (1, 'north'), (0, 'south');
--- change
DELETE FROM customers WHERE id = 1;
--- delta
-- -2 | 1

--- case: ANY and ALL of a column of the outer row
--- covers: Q13 ANY and ALL of a correlated value
SELECT o.id, 5 <> ANY (SELECT o.amount FROM customers) AS other, 5 > ALL (SELECT o.amount + c.id FROM customers AS c WHERE c.id = o.customer) AS below FROM orders AS o;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 3), (12, 2, NULL);
INSERT INTO customers VALUES (1, 'x');
--- change
DELETE FROM customers WHERE id = 1;
INSERT INTO customers VALUES (2, 'y');
--- delta
-- -1 | 10 | False | False
-- +1 | 10 | False | True
-- -1 | 12 | NULL | True
-- +1 | 12 | NULL | NULL
