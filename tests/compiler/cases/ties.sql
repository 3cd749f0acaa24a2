--- case: rows that ORDER BY does not tell apart are numbered the same way each time
--- covers: Q19 ties; Q26 ties without a key
SELECT id, row_number() OVER (PARTITION BY customer ORDER BY amount) AS place FROM orders;
--- before
INSERT INTO orders VALUES (12, 1, 5), (10, 1, 5), (11, 1, 5);
--- change
INSERT INTO orders VALUES (9, 1, 5);
--- delta
-- -1 | 10 | 1
-- +1 | 10 | 2
-- -1 | 11 | 2
-- +1 | 11 | 3
-- -1 | 12 | 3
-- +1 | 12 | 4
-- +1 | 9 | 1

--- case: the neighbours of a tie
--- covers: Q19 ties
SELECT id, lag(id) OVER (ORDER BY customer) AS behind, SUM(amount) OVER (ORDER BY customer ROWS UNBOUNDED PRECEDING) AS running FROM orders;
--- before
INSERT INTO orders VALUES (12, 1, 5), (10, 1, 6);
--- change
INSERT INTO orders VALUES (11, 1, 7);
--- delta
-- +1 | 11 | 10 | 13
-- -1 | 12 | 10 | 11
-- +1 | 12 | 11 | 18

--- case: a running total over a tie
--- covers: Q19 ties
SELECT id, SUM(amount) OVER (ORDER BY customer ROWS UNBOUNDED PRECEDING) AS running FROM orders;
--- before
INSERT INTO orders VALUES (12, 1, 5), (10, 1, 6);
--- change
INSERT INTO orders VALUES (11, 1, 7);
--- delta
-- +1 | 11 | 13
-- -1 | 12 | 11
-- +1 | 12 | 18

--- case: a tie at the limit
--- covers: Q21 ties
SELECT id, customer FROM orders ORDER BY customer LIMIT 2;
--- before
INSERT INTO orders VALUES (12, 1, 5), (10, 1, 6);
--- change
INSERT INTO orders VALUES (11, 1, 7);
--- delta
-- +1 | 11 | 1
-- -1 | 12 | 1

--- case: a tie of groups
--- covers: Q21 ties
SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer ORDER BY n DESC LIMIT 1;
--- before
INSERT INTO orders VALUES (12, 2, 5), (10, 3, 6);
--- change
INSERT INTO orders VALUES (11, 1, 7);
--- delta
-- +1 | 1 | 1
-- -1 | 2 | 1

--- case: a tie of the greatest
--- covers: Q7 MAX_BY and MIN_BY, ties
SELECT customer, max_by(id, amount) AS top, min_by(id, amount) AS low FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (12, 1, 5), (10, 1, 5);
--- change
INSERT INTO orders VALUES (13, 1, 5), (9, 1, 5);
--- delta
-- -1 | 1 | 12 | 10
-- +1 | 1 | 13 | 9

--- case: a tie of the most frequent
--- covers: Q7 MODE, ties
--- spark: DuckDB does not let MODE choose the least of equals
SELECT customer, mode(amount) AS usual FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (12, 1, 7), (10, 1, 7), (11, 1, 5);
--- change
INSERT INTO orders VALUES (13, 1, 5);
--- delta
-- -1 | 1 | 7
-- +1 | 1 | 5

--- case: the order of a list and of its copies
--- covers: Q7 COLLECT_LIST, ties
SELECT customer, collect_list(amount) AS amounts FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (12, 1, 7), (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 5), (13, 1, 7);
--- delta
-- +1 | 1 | [5, 5, 7, 7]
-- -1 | 1 | [5, 7]

--- case: the order of strings that are joined
--- covers: Q7 LISTAGG and STRING_AGG, ties; Q8 WITHIN GROUP
SELECT id, listagg(region, ',') AS regions, string_agg(region, '-') WITHIN GROUP (ORDER BY length(region)) AS short_first FROM customers GROUP BY id;
--- before
INSERT INTO customers VALUES (1, 'south'), (1, 'north');
--- change
INSERT INTO customers VALUES (1, 'west'), (1, 'east');
--- delta
-- +1 | 1 | east,north,south,west | east-west-north-south
-- -1 | 1 | north,south | north-south

--- case: QUALIFY chooses one of equals
--- covers: Q20 QUALIFY, ties
SELECT customer, id FROM orders QUALIFY row_number() OVER (PARTITION BY customer ORDER BY amount DESC) = 1;
--- before
INSERT INTO orders VALUES (12, 1, 7), (13, 1, 7);
--- change
INSERT INTO orders VALUES (11, 1, 7);
--- delta
-- +1 | 1 | 11
-- -1 | 1 | 12

--- case: the first value of peers
--- covers: Q19 ties
SELECT id, first_value(id) OVER (PARTITION BY customer ORDER BY amount) AS first FROM orders;
--- before
INSERT INTO orders VALUES (12, 1, 7), (13, 1, 7);
--- change
INSERT INTO orders VALUES (11, 1, 7);
--- delta
-- +1 | 11 | 11
-- +1 | 12 | 11
-- -1 | 12 | 12
-- +1 | 13 | 11
-- -1 | 13 | 12

--- case: the first of a tie for each row
--- covers: Q15 LATERAL, ties
SELECT c.id, t.id AS order_id FROM customers AS c, LATERAL (SELECT o.id FROM orders AS o WHERE o.customer = c.id ORDER BY o.amount LIMIT 1) AS t;
--- before
INSERT INTO customers VALUES (1, 'north');
INSERT INTO orders VALUES (12, 1, 7), (13, 1, 7);
--- change
INSERT INTO orders VALUES (11, 1, 7);
--- delta
-- +1 | 1 | 11
-- -1 | 1 | 12

--- case: the first and the last of rows in no order
--- covers: Q19 aggregates over unordered windows
SELECT id, first_value(amount) OVER (PARTITION BY customer) AS f, last_value(amount) OVER w AS l, SUM(amount) OVER w AS s
FROM orders WINDOW w AS (PARTITION BY customer);
--- before
INSERT INTO orders VALUES (2, 1, 5), (3, 1, 7), (4, 2, 1);
--- change
INSERT INTO orders VALUES (1, 1, 6);
--- delta
-- -1 | 2 | 5 | 7 | 12
-- -1 | 3 | 5 | 7 | 12
-- +1 | 1 | 6 | 7 | 18
-- +1 | 2 | 6 | 7 | 18
-- +1 | 3 | 6 | 7 | 18

--- case: a list of all rows in no order
--- covers: Q19 aggregates over unordered windows
SELECT id, collect_list(amount) OVER () AS l FROM orders;
--- before
INSERT INTO orders VALUES (2, 1, 5);
--- change
INSERT INTO orders VALUES (1, 1, 6);
--- delta
-- -1 | 2 | [5]
-- +1 | 1 | [6, 5]
-- +1 | 2 | [6, 5]

--- case: a frame of rows in no order
--- covers: Q19 aggregates over unordered windows
SELECT id, SUM(amount) OVER (PARTITION BY customer ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM orders;
--- before
INSERT INTO orders VALUES (1, 1, 5), (3, 1, 7);
--- change
INSERT INTO orders VALUES (2, 1, 6);
--- delta
-- -1 | 3 | 12
-- +1 | 2 | 11
-- +1 | 3 | 13

--- case: the order of a window begins with parentheses
--- covers: Q19 ties
SELECT id, ROW_NUMBER() OVER (ORDER BY (amount), id DESC) AS place FROM orders;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 5);
--- change
INSERT INTO orders VALUES (3, 1, 5);
--- delta
-- -1 | 1 | 2
-- +1 | 1 | 3
-- -1 | 2 | 1
-- +1 | 2 | 2
-- +1 | 3 | 1

--- case: the order of a window is a cast inside a function
--- covers: Q19 ties
SELECT id, ROW_NUMBER() OVER (ORDER BY CONCAT(CAST(amount AS STRING), 'x')) AS place FROM orders;
--- before
INSERT INTO orders VALUES (1, 1, 7), (2, 1, 6);
--- change
INSERT INTO orders VALUES (3, 1, 5);
--- delta
-- -1 | 1 | 2
-- +1 | 1 | 3
-- -1 | 2 | 1
-- +1 | 2 | 2
-- +1 | 3 | 1

--- case: the first rows by a window's number in parentheses
--- covers: Q21 ORDER BY with LIMIT
SELECT id FROM (SELECT id, ROW_NUMBER() OVER (ORDER BY (amount) DESC, id) AS n FROM orders) ORDER BY (n), id LIMIT 1;
--- before
INSERT INTO orders VALUES (1, 1, 7), (2, 1, 7);
--- change
DELETE FROM orders WHERE id = 1;
--- delta
-- -1 | 1
-- +1 | 2

--- case: a tie at the limit of an order by number
--- covers: Q21 ties of an ordinal
SELECT customer, id FROM orders ORDER BY 1 LIMIT 2;
--- before
INSERT INTO orders VALUES (12, 1, 5), (10, 1, 6);
--- change
INSERT INTO orders VALUES (11, 1, 7);
--- delta
-- +1 | 1 | 11
-- -1 | 1 | 12

--- case: a tie of groups by number, joined to their rows
--- covers: Q21 ties of an ordinal; Q21 ORDER BY with LIMIT in a subquery
SELECT o.id, g.n FROM orders AS o JOIN (SELECT customer, COUNT(*) AS n FROM orders GROUP BY 1 ORDER BY 2 DESC LIMIT 2) AS g ON g.customer = o.customer;
--- before
INSERT INTO orders VALUES (12, 3, 5), (11, 2, 5), (10, 1, 6);
--- change
INSERT INTO orders VALUES (9, 4, 7);
DELETE FROM orders WHERE id = 10;
--- delta
-- +1 | 12 | 1
-- -1 | 10 | 1

--- case: an order by nothing
--- covers: Q19 ties of a constant
SELECT id, ROW_NUMBER() OVER (ORDER BY NULL) AS place, LAG(id) OVER (PARTITION BY customer ORDER BY (SELECT NULL)) AS behind, SUM(amount) OVER (ORDER BY CAST(NULL AS INT) ROWS 1 PRECEDING) AS two, NTILE(2) OVER w AS half FROM orders WINDOW w AS (ORDER BY TRUE DESC);
--- before
INSERT INTO orders VALUES (12, 1, 5), (10, 1, 6), (11, 2, 7);
--- change
INSERT INTO orders VALUES (9, 1, 8);
DELETE FROM orders WHERE id = 11;
--- delta
-- +1 | 10 | 2 | 9 | 14 | 1
-- +1 | 12 | 3 | 10 | 11 | 2
-- +1 | 9 | 1 | NULL | 8 | 1
-- -1 | 10 | 1 | NULL | 6 | 1
-- -1 | 11 | 2 | NULL | 13 | 1
-- -1 | 12 | 3 | 10 | 12 | 2

--- case: rows left out after an order by nothing
--- covers: Q21 ties of a constant
SELECT id FROM orders ORDER BY CAST(NULL AS INT) OFFSET 2;
--- before
INSERT INTO orders VALUES (12, 1, 5), (10, 1, 6), (11, 2, 7);
--- change
INSERT INTO orders VALUES (9, 1, 8);
DELETE FROM orders WHERE id = 12;
--- delta
-- +1 | 11
-- -1 | 12

--- case: rows that tie are numbered apart, and have one rank and one total, over one window
--- covers: Q19 ties
SELECT id, row_number() OVER w AS place, rank() OVER w AS rank, lag(id) OVER v AS before, SUM(amount) OVER w AS running FROM orders WINDOW w AS (PARTITION BY customer ORDER BY amount), v AS w;
--- before
INSERT INTO orders VALUES (10, 1, 5), (11, 1, 5);
--- change
INSERT INTO orders VALUES (12, 1, 5);
--- delta
-- -1 | 10 | 1 | 1 | NULL | 10
-- +1 | 10 | 1 | 1 | NULL | 15
-- -1 | 11 | 2 | 1 | 10 | 10
-- +1 | 11 | 2 | 1 | 10 | 15
-- +1 | 12 | 3 | 1 | 11 | 15

--- case: a window around a window takes rows that tie in the same order
--- covers: Q19 ties in a chain of windows
SELECT SUM(o.is_new) OVER (PARTITION BY o.customer ORDER BY o.id ROWS UNBOUNDED PRECEDING) AS session, o.amount FROM (SELECT *, CASE WHEN id - LAG(id) OVER (PARTITION BY customer ORDER BY id) < 5 THEN 0 ELSE 1 END AS is_new FROM orders) AS o;
--- before
INSERT INTO orders VALUES (10, 1, 7), (30, 1, 1);
--- change
INSERT INTO orders VALUES (10, 1, 5), (30, 1, 2);
--- delta
-- +1 | 1 | 5
-- +1 | 2 | 2

--- case: windows in a chain of definitions, with a filter between
--- covers: Q19 ties in a chain of windows
WITH a AS (SELECT id, customer, amount, CASE WHEN id - LAG(id) OVER w < 5 THEN 0 ELSE 1 END AS is_new FROM orders WINDOW w AS (PARTITION BY customer ORDER BY id)), b AS (SELECT is_new AS n, amount AS c, id AS i, customer AS k FROM a WHERE amount > 0) SELECT SUM(n) OVER (PARTITION BY k ORDER BY i ROWS UNBOUNDED PRECEDING) AS session, c FROM b;
--- before
INSERT INTO orders VALUES (10, 1, 7), (30, 1, 1);
--- change
INSERT INTO orders VALUES (10, 1, 5), (30, 1, 2);
--- delta
-- +1 | 1 | 5
-- +1 | 2 | 2

--- case: copies of a row keep their order in a chain of windows
--- covers: Q19 copies in a chain of windows
SELECT * EXCEPT (amount), SUM(is_new) OVER (PARTITION BY customer ORDER BY id ROWS UNBOUNDED PRECEDING) AS session FROM (SELECT *, CASE WHEN id - LAG(id) OVER (PARTITION BY customer ORDER BY id) < 5 THEN 0 ELSE 1 END AS is_new FROM orders) AS o;
--- before
INSERT INTO orders VALUES (10, 1, 7);
--- change
INSERT INTO orders VALUES (10, 1, 7), (30, 1, 1), (30, 1, 1);
--- delta
-- +1 | 10 | 1 | 0 | 1
-- +1 | 30 | 1 | 1 | 2
-- +1 | 30 | 1 | 0 | 2

--- case: copies of a row keep their order through definitions and three windows
--- covers: Q19 copies in a chain of windows
WITH lagged AS (SELECT *, LAG(id) OVER w AS before FROM orders WINDOW w AS (PARTITION BY customer ORDER BY id)),
flagged AS (SELECT id, customer, COALESCE(id - before > 5, TRUE) AS is_new FROM lagged),
counted AS (SELECT flagged.*, SUM(IF(is_new, 1, 0)) OVER (PARTITION BY customer ORDER BY id ROWS UNBOUNDED PRECEDING) AS session FROM flagged)
SELECT *, FIRST_VALUE(is_new) OVER (PARTITION BY customer, session ORDER BY id) AS begins FROM counted;
--- before
INSERT INTO orders VALUES (10, 1, 7), (10, 1, 7);
--- change
INSERT INTO orders VALUES (30, 1, 1), (30, 1, 1);
DELETE FROM orders WHERE id = 10;
--- delta
-- -1 | 10 | 1 | True | 1 | True
-- -1 | 10 | 1 | False | 1 | True
-- +1 | 30 | 1 | True | 1 | True
-- +1 | 30 | 1 | False | 1 | True

--- case: windows of two orders below another leave copies open
--- covers: Q19 copies in a chain of windows
SELECT id, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY id) AS n FROM (SELECT *, LAG(id) OVER (PARTITION BY customer ORDER BY amount) AS a, LEAD(id) OVER (PARTITION BY customer ORDER BY id) AS b FROM orders) AS o;
--- before
INSERT INTO orders VALUES (10, 1, 7), (10, 1, 7);
--- change
INSERT INTO orders VALUES (30, 1, 1), (30, 1, 1);
--- delta
-- +1 | 30 | 3
-- +1 | 30 | 4

--- case: a tie among several of the greatest
--- covers: Q7 MAX_BY and MIN_BY, ties
SELECT customer, MIN_BY(id, amount, 2) AS least FROM orders GROUP BY customer;
--- before
INSERT INTO orders VALUES (12, 1, 5), (11, 1, 5);
--- change
INSERT INTO orders VALUES (10, 1, 5), (9, 1, 6);
--- delta
-- -1 | 1 | [11, 12]
-- +1 | 1 | [10, 11]

--- case: a list with a name that is a keyword in other places
--- covers: Q7 COLLECT_LIST, ties
SELECT customer, collect_list(amount) `over`, collect_list(id) `filter` FROM (SELECT * FROM orders) AS o GROUP BY customer;
--- before
INSERT INTO orders VALUES (12, 1, 7), (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 5);
--- delta
-- +1 | 1 | [5, 5, 7] | [10, 11, 12]
-- -1 | 1 | [5, 7] | [10, 12]

--- case: a tie at the limit of columns whose names end a clause elsewhere
--- covers: Q21 ties
SELECT id, `offset`, `limit` FROM (SELECT id, customer AS `offset`, amount AS `limit` FROM orders) AS o
ORDER BY `offset`, `limit` LIMIT 2;
--- before
INSERT INTO orders VALUES (12, 1, 5), (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 5);
--- delta
-- +1 | 11 | 1 | 5
-- -1 | 12 | 1 | 5

--- case: a tie in a window by columns whose names begin a frame elsewhere
--- covers: Q19 ties
SELECT id, SUM(n) OVER (PARTITION BY `range` ORDER BY groups, rows ROWS UNBOUNDED PRECEDING) AS running
FROM (SELECT id, 1 AS n, customer AS groups, amount AS rows, 2 AS `range` FROM orders) AS o;
--- before
INSERT INTO orders VALUES (12, 1, 5), (10, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 5);
--- delta
-- +1 | 11 | 2
-- -1 | 12 | 2
-- +1 | 12 | 3

--- case: a tie at the limit of rows that a comparison with the word LIMIT orders
--- covers: Q21 ties
SELECT id FROM orders ORDER BY CAST(amount AS STRING) = 'limit', customer LIMIT 1;
--- before
INSERT INTO orders VALUES (12, 1, 5);
--- change
INSERT INTO orders VALUES (11, 1, 7);
--- delta
-- +1 | 11
-- -1 | 12

--- case: a list over a window that shares its name with a query
--- covers: Q19 aggregates over unordered windows
WITH w AS (SELECT id, amount FROM orders) SELECT id, collect_list(amount) OVER w AS x FROM w WINDOW w AS (PARTITION BY id);

--- case: lists over two windows of one name
--- covers: Q19 aggregates over unordered windows
SELECT id, collect_list(amount) OVER w AS x FROM orders WINDOW w AS (PARTITION BY customer) UNION ALL SELECT id, collect_list(id) OVER w AS x FROM orders WINDOW w AS (PARTITION BY amount);

--- case: a list over a window that another window names
--- covers: Q19 aggregates over unordered windows
SELECT id, collect_list(amount) OVER v AS x, SUM(amount) OVER w AS s FROM orders WINDOW w AS (PARTITION BY customer), v AS w;
