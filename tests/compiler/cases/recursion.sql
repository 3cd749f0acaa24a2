--- case: an edge comes, and all that it leads to
--- covers: Q18 WITH RECURSIVE, an edge comes
WITH RECURSIVE reach(node, depth) AS (SELECT id, 0 FROM customers UNION ALL SELECT o.id, r.depth + 1 FROM reach AS r JOIN orders AS o ON o.customer = r.node WHERE r.depth < 3) SELECT node, depth FROM reach;
--- before
INSERT INTO customers VALUES (1, 'root');
INSERT INTO orders VALUES (2, 1, 0), (4, 3, 0), (5, 4, 0);
--- change
INSERT INTO orders VALUES (3, 2, 0);
--- delta
-- +1 | 3 | 2
-- +1 | 4 | 3

--- case: an edge goes, and all that it led to
--- covers: Q18 WITH RECURSIVE, an edge goes
WITH RECURSIVE reach(node, depth) AS (SELECT id, 0 FROM customers UNION ALL SELECT o.id, r.depth + 1 FROM reach AS r JOIN orders AS o ON o.customer = r.node WHERE r.depth < 3) SELECT node, depth FROM reach;
--- before
INSERT INTO customers VALUES (1, 'root');
INSERT INTO orders VALUES (2, 1, 0), (3, 2, 0), (4, 3, 0), (5, 1, 0);
--- change
DELETE FROM orders WHERE id = 2;
--- delta
-- -1 | 2 | 1
-- -1 | 3 | 2
-- -1 | 4 | 3

--- case: the columns of a recursion change their names
--- covers: Q18 WITH RECURSIVE, columns renamed
WITH RECURSIVE reach(node, depth) AS (SELECT id, 0 FROM customers UNION ALL SELECT o.id, r.depth + 1 FROM reach AS r JOIN orders AS o ON o.customer = r.node WHERE r.depth < 3) SELECT depth AS node, node AS depth FROM reach;
--- before
INSERT INTO customers VALUES (1, 'root');
INSERT INTO orders VALUES (2, 1, 0);
--- change
INSERT INTO orders VALUES (3, 2, 0);
--- delta
-- +1 | 2 | 3

--- case: a subtree changes its parent in one window
--- covers: Q18 WITH RECURSIVE, a subtree moves
WITH RECURSIVE tree(node, path) AS (SELECT id, region FROM customers UNION ALL SELECT o.id, concat(t.path, '/', o.amount) FROM tree AS t JOIN orders AS o ON o.customer = t.node WHERE length(t.path) < 12) SELECT node, path FROM tree;
--- before
INSERT INTO customers VALUES (1, 'a'), (2, 'b');
INSERT INTO orders VALUES (3, 1, 7), (4, 3, 8), (5, 4, 9);
--- change
UPDATE orders SET customer = 2 WHERE id = 3;
DELETE FROM customers WHERE id = 1;
--- delta
-- -1 | 1 | a
-- -1 | 3 | a/7
-- +1 | 3 | b/7
-- -1 | 4 | a/7/8
-- +1 | 4 | b/7/8
-- -1 | 5 | a/7/8/9
-- +1 | 5 | b/7/8/9

--- case: two paths to one node are two rows, and one of them goes
--- covers: Q18 WITH RECURSIVE, several paths; Q26 copies in a recursion
WITH RECURSIVE reach(node, depth) AS (SELECT id, 0 FROM customers UNION ALL SELECT o.id, r.depth + 1 FROM reach AS r JOIN orders AS o ON o.customer = r.node WHERE r.depth < 3) SELECT node FROM reach;
--- before
INSERT INTO customers VALUES (1, 'root');
INSERT INTO orders VALUES (2, 1, 0), (3, 1, 0), (4, 2, 0), (4, 3, 0), (5, 4, 0);
--- change
DELETE FROM orders WHERE id = 3;
--- delta
-- -1 | 3
-- -1 | 4
-- -1 | 5

--- case: a cycle that a depth cuts off
--- covers: Q18 WITH RECURSIVE, a cycle with a depth
WITH RECURSIVE reach(node, depth) AS (SELECT id, 0 FROM customers UNION ALL SELECT o.id, r.depth + 1 FROM reach AS r JOIN orders AS o ON o.customer = r.node WHERE r.depth < 3) SELECT node, MIN(depth) AS nearest, COUNT(*) AS paths FROM reach GROUP BY node;
--- before
INSERT INTO customers VALUES (1, 'root');
INSERT INTO orders VALUES (2, 1, 0), (3, 2, 0);
--- change
INSERT INTO orders VALUES (1, 3, 0);
--- delta
-- -1 | 1 | 0 | 1
-- +1 | 1 | 0 | 2

--- case: the base and the step change in one window
--- covers: Q18 WITH RECURSIVE, base and step move
WITH RECURSIVE reach(node, depth) AS (SELECT id, 0 FROM customers UNION ALL SELECT o.id, r.depth + 1 FROM reach AS r JOIN orders AS o ON o.customer = r.node WHERE r.depth < 3) SELECT node, depth FROM reach;
--- before
INSERT INTO customers VALUES (1, 'root'), (7, 'root');
INSERT INTO orders VALUES (2, 1, 0), (8, 7, 0), (9, 8, 0);
--- change
DELETE FROM customers WHERE id = 7;
INSERT INTO customers VALUES (8, 'root');
INSERT INTO orders VALUES (3, 2, 0);
DELETE FROM orders WHERE id = 8;
--- delta
-- +1 | 3 | 2
-- -1 | 7 | 0
-- +1 | 8 | 0
-- -1 | 8 | 1
-- +1 | 9 | 1
-- -1 | 9 | 2

--- case: numbers up to a limit that a table holds
--- covers: Q18 WITH RECURSIVE without a table in its step
WITH RECURSIVE numbers(id, n) AS (SELECT id, 1 FROM orders UNION ALL SELECT id, n + 1 FROM numbers WHERE n < 3) SELECT id, n FROM numbers;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5);
--- change
DELETE FROM orders WHERE id = 11;
INSERT INTO orders VALUES (12, 1, 5);
--- delta
-- -1 | 11 | 1
-- -1 | 11 | 2
-- -1 | 11 | 3
-- +1 | 12 | 1
-- +1 | 12 | 2
-- +1 | 12 | 3

--- case: a step over two tables that both move
--- covers: Q18 WITH RECURSIVE, a step over a join
WITH RECURSIVE reach(node, depth) AS (SELECT customer, 0 FROM orders WHERE amount = 1 UNION ALL SELECT o.id, r.depth + 1 FROM reach AS r JOIN orders AS o ON o.customer = r.node JOIN customers AS c ON c.id = o.id WHERE r.depth < 3) SELECT node, depth FROM reach;
--- before
INSERT INTO orders VALUES (2, 1, 1), (3, 2, 0), (4, 3, 0);
INSERT INTO customers VALUES (2, 'north'), (4, 'north');
--- change
INSERT INTO customers VALUES (3, 'north');
DELETE FROM orders WHERE id = 4;
INSERT INTO orders VALUES (4, 2, 0);
--- delta
-- +1 | 3 | 2
-- +1 | 4 | 2

--- case: two tables begin a recursion
--- covers: Q18 WITH RECURSIVE, several arms
WITH RECURSIVE reach(node, depth) AS ((SELECT id, 0 FROM customers UNION ALL SELECT length(name), 0 FROM regions) UNION ALL SELECT o.id, r.depth + 1 FROM reach AS r JOIN orders AS o ON o.customer = r.node WHERE r.depth < 2) SELECT node, depth FROM reach;
--- before
INSERT INTO customers VALUES (1, 'root');
INSERT INTO orders VALUES (2, 1, 3), (4, 3, 6);
--- change
INSERT INTO regions VALUES ('abc', 'x');
DELETE FROM orders WHERE id = 2;
--- delta
-- -1 | 2 | 1
-- +1 | 3 | 0
-- +1 | 4 | 1

--- case: a recursion joined, grouped and read twice
--- covers: Q18 WITH RECURSIVE read twice; Q17 a CTE read twice
WITH RECURSIVE reach(root, node, depth) AS (SELECT id, id, 0 FROM customers UNION ALL SELECT r.root, o.id, r.depth + 1 FROM reach AS r JOIN orders AS o ON o.customer = r.node WHERE r.depth < 3) SELECT a.root, b.root AS other, COUNT(*) AS n FROM reach AS a JOIN reach AS b ON a.node = b.node AND a.root < b.root GROUP BY a.root, b.root;
--- before
INSERT INTO customers VALUES (1, 'x'), (2, 'y');
INSERT INTO orders VALUES (3, 1, 0), (4, 3, 0), (3, 2, 0);
--- change
DELETE FROM orders WHERE id = 4;
INSERT INTO orders VALUES (5, 1, 0), (5, 2, 0), (6, 3, 0);
--- delta
-- -1 | 1 | 2 | 2
-- +1 | 1 | 2 | 3

--- case: a step of two arms, along an edge and against it
--- covers: Q18 WITH RECURSIVE, a step of several arms
WITH RECURSIVE reach(node, depth) AS (SELECT id, 0 FROM customers UNION ALL (SELECT o.id, r.depth + 1 FROM reach AS r JOIN orders AS o ON o.customer = r.node WHERE r.depth < 2 UNION ALL SELECT o.customer, r.depth + 1 FROM reach AS r JOIN orders AS o ON o.id = r.node WHERE r.depth < 2)) SELECT node, COUNT(*) AS n, MIN(depth) AS nearest FROM reach WHERE node IS NOT NULL GROUP BY node;
--- before
INSERT INTO customers VALUES (1, 'root');
INSERT INTO orders VALUES (2, 1, 0);
--- change
INSERT INTO orders VALUES (3, 2, 0);
--- delta
-- +1 | 3 | 1 | 2

--- case: a recursion joined to itself
--- covers: Q18 WITH RECURSIVE, a step that combines its rows
WITH RECURSIVE r(a, b) AS (SELECT customer, id FROM orders UNION ALL SELECT x.a, y.b FROM r AS x JOIN r AS y ON x.b = y.a WHERE x.a < x.b AND y.a < y.b) SELECT a, b FROM r;
--- before
INSERT INTO orders VALUES (2, 1, 0), (3, 2, 0), (4, 3, 0), (5, 4, 0);
--- change
DELETE FROM orders WHERE id = 4;
--- delta
-- -1 | 3 | 4
-- -1 | 2 | 4
-- -1 | 3 | 5
-- -1 | 1 | 5

--- case: a step without copies, counted
--- covers: Q18 WITH RECURSIVE, a step that combines its rows
WITH RECURSIVE r(n, d) AS (SELECT id, 0 FROM customers UNION ALL SELECT DISTINCT o.id, r.d + 1 FROM r JOIN orders AS o ON o.customer = r.n WHERE r.d < 3) SELECT n, COUNT(*) AS c FROM r GROUP BY n;
--- before
INSERT INTO customers VALUES (1, 'x');
INSERT INTO orders VALUES (2, 1, 0), (3, 1, 0), (4, 2, 0), (4, 3, 0);
--- change
DELETE FROM orders WHERE id = 3;
INSERT INTO orders VALUES (2, 1, 1), (5, 4, 0);
--- delta
-- -1 | 3 | 1
-- +1 | 5 | 1

--- case: a step that leaves out what its round has
--- covers: Q18 WITH RECURSIVE, a step that combines its rows
WITH RECURSIVE r(n, d) AS (SELECT id, 0 FROM customers UNION ALL SELECT o.id, r.d + 1 FROM r JOIN orders AS o ON o.customer = r.n WHERE r.d < 4 AND o.id NOT IN (SELECT s.n FROM r AS s)) SELECT d, n FROM r;
--- before
INSERT INTO customers VALUES (1, 'x'), (2, 'y');
INSERT INTO orders VALUES (2, 1, 0), (3, 1, 0), (4, 3, 0);
--- change
DELETE FROM customers WHERE id = 2;
--- delta
-- -1 | 0 | 2
-- +1 | 1 | 2

--- case: a step of a union without copies
--- covers: Q18 WITH RECURSIVE, a step that combines its rows
WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION ALL (SELECT n + 1 FROM r WHERE n < 3 UNION SELECT n + 2 FROM r WHERE n < 3)) SELECT n FROM r;
--- before
INSERT INTO orders VALUES (1, 1, 0);
--- change
INSERT INTO orders VALUES (2, 1, 0);
--- delta
-- +1 | 2
-- +1 | 4

--- case: rows that a recursion only looks for
--- covers: Q18 WITH RECURSIVE, a step that combines its rows
WITH RECURSIVE r(n) AS (SELECT id FROM customers UNION ALL SELECT o.id FROM orders AS o WHERE o.id > o.customer AND EXISTS (SELECT 1 FROM r WHERE r.n = o.customer)) SELECT n FROM r WHERE n > 1;
--- before
INSERT INTO customers VALUES (1, 'x');
INSERT INTO orders VALUES (2, 1, 0), (2, 1, 0), (3, 2, 0);
--- change
INSERT INTO orders VALUES (4, 3, 0);
UPDATE orders SET id = 5 WHERE id = 3;
--- delta
-- -1 | 3
-- +1 | 5

--- case: a recursion with levels of its own
--- covers: Q18 MAX RECURSION LEVEL
WITH RECURSIVE a AS (SELECT id FROM customers), reach(node, depth) MAX RECURSION LEVEL 9 AS (SELECT id, 0 FROM a UNION ALL SELECT o.id, r.depth + 1 FROM reach AS r JOIN orders AS o ON o.customer = r.node WHERE r.depth < 3) SELECT node, depth FROM reach;
--- before
INSERT INTO customers VALUES (1, 'root');
INSERT INTO orders VALUES (2, 1, 0), (4, 3, 0);
--- change
INSERT INTO orders VALUES (3, 2, 0);
--- delta
-- +1 | 3 | 2
-- +1 | 4 | 3

--- case: a recursion inside a correlated subquery
--- covers: Q18 inside a correlated subquery
SELECT c.id, (WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT COUNT(*) FROM r WHERE r.n > c.id) AS n FROM customers AS c;
--- before
INSERT INTO customers VALUES (1, 'a'), (2, 'b');
INSERT INTO orders VALUES (1, 1, 1);
--- change
INSERT INTO orders VALUES (3, 2, 1);
--- delta
-- +1 | 1 | 7
-- +1 | 2 | 6
-- -1 | 1 | 4
-- -1 | 2 | 3

--- case: a recursion that both sides of a correlated UNION read
--- covers: Q18 inside a correlated subquery
SELECT c.id FROM customers AS c WHERE EXISTS (WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION SELECT n + 1 FROM r WHERE n < 3) SELECT r.n FROM r JOIN orders AS o ON o.customer = r.n WHERE r.n = c.id UNION ALL SELECT n FROM r WHERE c.id + 5 = n);
--- before
INSERT INTO customers VALUES (1, 'a'), (2, 'b');
INSERT INTO orders VALUES (1, 1, 1);
--- change
INSERT INTO orders VALUES (3, 2, 1);
--- delta
-- +1 | 2

--- case: a recursion in each round of another
--- covers: Q18 WITH RECURSIVE in the step of another
WITH RECURSIVE r(n, lvl) AS (SELECT id, 0 FROM customers UNION ALL SELECT k, lvl + 1 FROM (WITH RECURSIVE s(k, lvl) AS (SELECT o.id, r.lvl FROM r JOIN orders AS o ON o.customer = r.n UNION ALL SELECT s.k + 1, s.lvl FROM s WHERE s.k < 4) SELECT k, lvl FROM s) AS t WHERE lvl < 2) SELECT n, lvl FROM r;
--- before
INSERT INTO customers VALUES (1, 'a');
INSERT INTO orders VALUES (2, 1, 0);
--- change
INSERT INTO orders VALUES (5, 3, 0);
--- delta
-- +1 | 5 | 2

--- case: rounds that combine their rows, in each round of others
--- covers: Q18 WITH RECURSIVE in the step of another, both of which combine their rows
WITH RECURSIVE r(n) AS (SELECT id FROM orders UNION ALL SELECT k + 10 FROM (WITH RECURSIVE s(k) AS (SELECT DISTINCT n FROM r WHERE n < 10 UNION ALL SELECT DISTINCT a.k + b.k FROM s AS a JOIN s AS b ON a.k = b.k WHERE a.k < 3) SELECT k FROM s) AS t) SELECT n FROM r;
--- before
INSERT INTO orders VALUES (1, 1, 1);
--- change
INSERT INTO orders VALUES (2, 1, 1);
--- delta
-- +1 | 2
-- +1 | 12
-- +1 | 14

--- case: a recursion whose base has a star beside a name
--- covers: Q18 a base with a star
WITH RECURSIVE r AS (SELECT name AS root_name, * FROM regions WHERE name = 'north' UNION ALL SELECT r.root_name, x.* FROM r JOIN regions AS x ON x.name = r.country) SELECT root_name, name, country FROM r;
--- before
INSERT INTO regions VALUES ('north', 'here'), ('here', 'there');
--- change
INSERT INTO regions VALUES ('there', 'nowhere');
DELETE FROM regions WHERE name = 'here';
INSERT INTO regions VALUES ('here', 'there');
--- delta
-- +1 | north | there | nowhere

--- case: of two arms over different tables, one does not move
--- covers: Q18 WITH RECURSIVE, a step of several arms
WITH RECURSIVE r AS (SELECT name AS at FROM regions WHERE country = '' UNION ALL SELECT at FROM (SELECT a.name AS at FROM regions AS a JOIN r ON a.country = r.at UNION ALL SELECT c.region FROM customers AS c JOIN r ON CAST(c.id AS STRING) = r.at) AS x) SELECT at FROM r;
--- before
INSERT INTO regions VALUES ('1', ''), ('a', 'b');
INSERT INTO customers VALUES (1, 'c');
--- change
INSERT INTO regions VALUES ('2', '1'), ('d', 'c');
--- delta
-- +1 | 2
-- +1 | d
