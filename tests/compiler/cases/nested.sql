--- case: arrays and structs are values of a column
--- covers: Q1 array and struct constructors; Q28 nested types
SELECT id, array(customer, amount) AS pair, named_struct('a', customer, 'b', amount) AS named FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
UPDATE orders SET amount = NULL;
--- delta
-- -1 | 10 | [1, 5] | {'a': 1, 'b': 5}
-- +1 | 10 | [1, None] | {'a': 1, 'b': None}

--- case: elements and fields
--- covers: Q1 subscripts and fields
SELECT id, tags[0] AS first, element_at(tags, 1) AS one, size(tags) AS n, place.x AS x, place.y AS y FROM visits WHERE array_contains(tags, 2);
--- before
INSERT INTO visits (id, tags, place) VALUES (1, array(1, 2), named_struct('x', 1, 'y', 'north'));
--- change
UPDATE visits SET tags = array(3, 2);
--- delta
-- -1 | 1 | 1 | 1 | 2 | 1 | north
-- +1 | 1 | 3 | 3 | 2 | 1 | north

--- case: rows with arrays and structs come and go
--- covers: Q28 nested types; Q26 copies with nested types
SELECT id, happened, tags, place FROM visits;
--- before
INSERT INTO visits (id, tags, place) VALUES (1, array(1, 2), named_struct('x', 1, 'y', 'north')), (1, array(1, 2), named_struct('x', 1, 'y', 'north')), (2, NULL, NULL);
--- change
DELETE FROM visits WHERE id = 1;
INSERT INTO visits (id, tags, place) VALUES (1, array(1, 2), named_struct('x', 1, 'y', 'north'));
--- delta
-- -1 | 1 | NULL | [1, 2] | {'x': 1, 'y': 'north'}

--- case: groups named by a struct and by an array
--- covers: Q28 nested group keys
SELECT place, tags, COUNT(*) AS n, MAX(id) AS last FROM visits GROUP BY place, tags;
--- before
INSERT INTO visits (id, tags, place) VALUES (1, array(1, NULL), named_struct('x', 1, 'y', NULL)), (2, array(1, NULL), named_struct('x', 1, 'y', NULL)), (3, NULL, NULL);
--- change
DELETE FROM visits WHERE id = 2;
INSERT INTO visits (id, tags, place) VALUES (4, NULL, NULL);
--- delta
-- -1 | NULL | NULL | 1 | 3
-- +1 | NULL | NULL | 2 | 4
-- +1 | {'x': 1, 'y': None} | [1, None] | 1 | 1
-- -1 | {'x': 1, 'y': None} | [1, None] | 2 | 2

--- case: DISTINCT of structs
--- covers: Q28 nested types in DISTINCT
SELECT DISTINCT place FROM visits;
--- before
INSERT INTO visits (id, place) VALUES (1, named_struct('x', 1, 'y', 'north')), (2, named_struct('x', 1, 'y', 'north'));
--- change
DELETE FROM visits WHERE id = 1;
INSERT INTO visits (id, place) VALUES (3, named_struct('x', 1, 'y', NULL));
--- delta
-- +1 | {'x': 1, 'y': None}

--- case: a join on a struct
--- covers: Q28 nested join keys
SELECT a.id, b.id AS other FROM visits AS a JOIN visits AS b ON a.place = b.place AND a.id < b.id;
--- before
INSERT INTO visits (id, place) VALUES (1, named_struct('x', 1, 'y', 'north')), (2, named_struct('x', 1, 'y', 'north')), (3, named_struct('x', 2, 'y', 'north'));
--- change
UPDATE visits SET place = named_struct('x', 2, 'y', 'north') WHERE id = 2;
--- delta
-- -1 | 1 | 2
-- +1 | 2 | 3

--- case: moments are told apart, and have parts
--- covers: Q28 timestamps
SELECT happened, date_trunc('hour', happened) AS hour, CAST(happened AS DATE) AS day, COUNT(*) AS n FROM visits GROUP BY happened;
--- before
INSERT INTO visits (id, happened) VALUES (1, TIMESTAMP '2013-01-31 10:30:00'), (2, NULL);
--- change
INSERT INTO visits (id, happened) VALUES (3, TIMESTAMP '2013-01-31 10:30:00');
DELETE FROM visits WHERE id = 2;
--- delta
-- -1 | 2013-01-31 10:30:00+00:00 | 2013-01-31 10:00:00+00:00 | 2013-01-31 | 1
-- +1 | 2013-01-31 10:30:00+00:00 | 2013-01-31 10:00:00+00:00 | 2013-01-31 | 2
-- -1 | NULL | NULL | NULL | 1

--- case: a function for every element
--- covers: Q1 lambdas
SELECT id, transform(tags, x -> x + id) AS more, filter(tags, x -> x > 1) AS large FROM visits;
--- before
INSERT INTO visits (id, tags) VALUES (1, array(1, 2));
--- change
UPDATE visits SET id = 2;
--- delta
-- -1 | 1 | [2, 3] | [2]
-- +1 | 2 | [3, 4] | [2]

--- case: some and all elements, and what they add up to
--- covers: Q1 lambdas
--- spark: DuckDB has no EXISTS and FORALL over lists
SELECT id, exists(tags, x -> x > 1) AS some_large, forall(tags, x -> x > 1) AS all_large, aggregate(tags, 0, (a, x) -> a + x) AS total, zip_with(tags, tags, (x, y) -> x * y) AS squares FROM visits;
--- before
INSERT INTO visits (id, tags) VALUES (1, array(1, 2));
--- change
UPDATE visits SET tags = array(2, 3);
--- delta
-- -1 | 1 | True | False | 3 | [1, 4]
-- +1 | 1 | True | True | 5 | [4, 9]

--- case: an entry of a map that the query makes
--- covers: Q1 maps inside an expression
--- spark: DuckDB answers with a list
SELECT id, map('a', amount)['a'] AS a, size(map('a', amount)) AS n FROM orders;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
UPDATE orders SET amount = 6;
--- delta
-- -1 | 10 | 5 | 1
-- +1 | 10 | 6 | 1

--- case: a value that is TRUE, FALSE or UNKNOWN
--- covers: Q1 IS TRUE/FALSE/UNKNOWN
--- spark: DuckDB has no IS UNKNOWN
SELECT id, (amount > 5) IS UNKNOWN AS unknown FROM orders WHERE (amount > 9) IS NOT TRUE;
--- before
INSERT INTO orders VALUES (10, 1, 5);
--- change
UPDATE orders SET amount = NULL;
--- delta
-- -1 | 10 | False
-- +1 | 10 | True

--- case: an element has the name of its array
--- covers: Q1 columns without a name of their own; Q28 nested types
SELECT id, tags[0] FROM visits WHERE size(tags) > 0;
--- before
INSERT INTO visits VALUES (1, '2013-01-31 10:00:00', ARRAY(1, 2), NULL);
--- change
UPDATE visits SET tags = ARRAY(7);
--- delta
-- -1 | 1 | 1
-- +1 | 1 | 7

--- case: entries of a variant by their paths
--- covers: Q28 paths into a VARIANT
--- spark: DuckDB has no VARIANT paths
SELECT id, v:n::INT AS n, v:b.c[0]::STRING AS c, v:['a b']::BOOLEAN AS ab
FROM (SELECT id, parse_json(region) AS v FROM customers WHERE region LIKE '{%') AS t WHERE v:n::INT > 1;
--- before
INSERT INTO customers VALUES (1, '{"n": 2, "b": {"c": ["x", "y"]}, "a b": true}'), (2, '{"n": 1}');
--- change
UPDATE customers SET region = '{"n": 3}' WHERE id = 2;
--- delta
-- +1 | 2 | 3 | NULL | NULL

--- case: groups by an entry of a variant
--- covers: Q28 paths into a VARIANT
--- spark: DuckDB has no VARIANT paths
SELECT SUM(v:n::INT) AS n FROM (SELECT parse_json(region) AS v FROM customers WHERE region LIKE '{%') AS t GROUP BY v:k::STRING;
--- before
INSERT INTO customers VALUES (1, '{"n": 2, "k": "x"}'), (2, '{"n": 1, "k": "y"}');
--- change
INSERT INTO customers VALUES (3, '{"n": 5, "k": "x"}');
--- delta
-- -1 | 2
-- +1 | 7

--- case: a star over a join repeats a name that nothing mentions
--- covers: Q12 columns of one name in a subquery
WITH w AS (SELECT * FROM orders AS o JOIN customers AS c ON o.customer = c.id) SELECT region, amount FROM w WHERE amount > 5;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6), (3, 2, 7);
INSERT INTO customers VALUES (1, 'x'), (2, 'y');
--- change
UPDATE orders SET amount = 8 WHERE id = 1;
DELETE FROM customers WHERE id = 2;
--- delta
-- +1 | x | 8
-- -1 | y | 7

--- case: columns of one name in a derived table are told apart by position
--- covers: Q12 columns of one name in a subquery
SELECT a, b, n FROM (SELECT *, 1 AS id FROM (SELECT o.id, c.id, COUNT(*) AS n FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id GROUP BY ALL)) AS y(a, b, n, one);
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (2, 3, 6);
INSERT INTO customers VALUES (1, 'x'), (2, 'y');
--- change
INSERT INTO customers VALUES (3, 'z');
--- delta
-- +1 | 2 | 3 | 2
-- -1 | 2 | NULL | 2

--- case: operands of EXCEPT and the first rows of one repeat a name
--- covers: Q12 columns of one name in a subquery; Q11 EXCEPT
SELECT amount FROM (SELECT * FROM orders AS o JOIN customers AS c ON o.customer = c.id EXCEPT (SELECT * FROM orders AS o JOIN customers AS c ON o.customer = c.id ORDER BY o.amount, o.id LIMIT 1));
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 1, 6);
INSERT INTO customers VALUES (1, 'x');
--- change
INSERT INTO orders VALUES (3, 1, 4);
--- delta
-- +1 | 5

--- case: the fields of a struct but one
--- covers: Q1 fields of a struct without some
--- spark: DuckDB has no star of a struct with EXCEPT
SELECT id, place.* EXCEPT (X) FROM visits;
--- before
INSERT INTO visits VALUES (1, NULL, NULL, named_struct('x', 1, 'y', 'a')), (2, NULL, NULL, NULL);
--- change
INSERT INTO visits VALUES (3, NULL, NULL, named_struct('x', 2, 'y', 'b'));
DELETE FROM visits WHERE id = 1;
--- delta
-- -1 | 1 | a
-- +1 | 3 | b

--- case: the fields of a struct of a table but one
--- covers: Q1 fields of a struct without some
--- spark: DuckDB has no star of a struct with EXCEPT
SELECT v.place.* EXCEPT (y), v.id FROM visits AS v;
--- before
INSERT INTO visits VALUES (1, NULL, NULL, named_struct('x', 1, 'y', 'a')), (2, NULL, NULL, NULL);
--- change
INSERT INTO visits VALUES (3, NULL, NULL, named_struct('x', 2, 'y', 'b'));
DELETE FROM visits WHERE id = 1;
--- delta
-- -1 | 1 | 1
-- +1 | 2 | 3

--- case: a struct of the fields of another but one
--- covers: Q1 fields of a struct without some
--- spark: DuckDB has no star of a struct with EXCEPT
SELECT struct(place.* EXCEPT (x)) AS s FROM visits;
--- before
INSERT INTO visits VALUES (1, NULL, NULL, named_struct('x', 1, 'y', 'a')), (2, NULL, NULL, NULL);
--- change
INSERT INTO visits VALUES (3, NULL, NULL, named_struct('x', 2, 'y', 'b'));
DELETE FROM visits WHERE id = 1;
--- delta
-- -1 | {'y': 'a'}
-- +1 | {'y': 'b'}

--- case: the fields of a struct in a struct but one
--- covers: Q1 fields of a struct without some
--- spark: DuckDB has no star of a struct with EXCEPT
SELECT s.q.* EXCEPT (a), n FROM (SELECT named_struct('p', id, 'q', named_struct('a', amount, 'b', customer)) AS s, id AS n FROM orders) AS t;
--- before
INSERT INTO orders VALUES (1, 1, 5);
--- change
UPDATE orders SET customer = 2;
--- delta
-- -1 | 1 | 1
-- +1 | 2 | 1

--- case: the names of fields as their author spells them
--- covers: Q28 names of fields
SELECT ID, to_json(struct(id AS OrderId, Amount, o.customer + 1)) AS j, to_json(named_struct('Cust', customer)) AS k
FROM orders AS o;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
--- delta
-- -1 | 2 | {"OrderId":2,"Amount":6,"col3":4} | {"Cust":3}
-- +1 | 3 | {"OrderId":3,"Amount":8,"col3":7} | {"Cust":6}
-- +1 | 9 | {"OrderId":9,"Amount":9,"col3":3} | {"Cust":2}

--- case: the names of fields from stars
--- covers: Q28 names of fields
--- spark: a struct of DuckDB has no two fields of one name
SELECT to_json(struct(*)) AS j, to_json(struct(q.OrderId, q.*)) AS k
FROM (SELECT id AS OrderId, Amount FROM orders) AS q;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
--- delta
-- -1 | {"OrderId":2,"Amount":6} | {"OrderId":2,"OrderId":2,"Amount":6}
-- +1 | {"OrderId":3,"Amount":8} | {"OrderId":3,"OrderId":3,"Amount":8}
-- +1 | {"OrderId":9,"Amount":9} | {"OrderId":9,"OrderId":9,"Amount":9}

--- case: the names of fields of rows in groups
--- covers: Q28 names of fields
SELECT to_json(sort_array(collect_list(struct(id AS Id, Amount)))) AS j
FROM orders GROUP BY customer % 2;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
--- delta
-- -1 | [{"Id":1,"Amount":5},{"Id":2,"Amount":6},{"Id":4,"Amount":7}]
-- +1 | [{"Id":1,"Amount":5},{"Id":4,"Amount":7}]
-- +1 | [{"Id":3,"Amount":8},{"Id":9,"Amount":9}]

--- case: the names of fields in lambdas and casts
--- covers: Q28 names of fields
--- spark: DuckDB tells the case of parameters apart
SELECT id, to_json(transform(array(amount), Xx -> struct(XX, xx + 1 AS More))) AS j, to_json(CAST(struct(customer) AS STRUCT<Cust: INT>)) AS k
FROM orders;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
--- delta
-- -1 | 2 | [{"XX":6,"More":7}] | {"Cust":3}
-- +1 | 3 | [{"XX":8,"More":9}] | {"Cust":6}
-- +1 | 9 | [{"XX":9,"More":10}] | {"Cust":2}

--- case: the names of fields of rows in parentheses
--- covers: Q28 names of fields
--- spark: the fields of a row have no names in DuckDB
SELECT id, to_json((Customer, 2, amount AS Much)) AS j
FROM orders WHERE (id, customer) IN (SELECT id, 3 FROM customers) OR amount > 6;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
INSERT INTO customers VALUES (1, 'a'), (3, 'b'), (6, 'c');
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
INSERT INTO customers VALUES (2, 'd'), (9, 'e');
--- delta
-- +1 | 3 | {"Customer":6,"col2":2,"Much":8}
-- +1 | 9 | {"Customer":2,"col2":2,"Much":9}

--- case: the names of fields of zipped arrays
--- covers: Q28 names of fields
--- spark: DuckDB has no ARRAYS_ZIP
SELECT id, to_json(arrays_zip(Ids, q.amounts, array(1))) AS j, arrays_zip(ids, amounts)[0].amounts AS n
FROM (SELECT id, array(id, customer) AS Ids, array(amount) AS amounts FROM orders) AS q;
--- before
INSERT INTO orders VALUES (1, 1, 5), (2, 3, 6), (4, 5, 7);
--- change
INSERT INTO orders VALUES (3, 6, 8), (9, 2, 9);
DELETE FROM orders WHERE id = 2;
--- delta
-- -1 | 2 | [{"Ids":2,"amounts":6,"2":1},{"Ids":3}] | 6
-- +1 | 3 | [{"Ids":3,"amounts":8,"2":1},{"Ids":6}] | 8
-- +1 | 9 | [{"Ids":9,"amounts":9,"2":1},{"Ids":2}] | 9

--- case: a star without a field of a struct
--- covers: Q1 fields of a struct without some
--- spark: DuckDB has no star without a field
SELECT * EXCEPT (place.x, happened, tags) FROM visits;
--- before
INSERT INTO visits VALUES (1, TIMESTAMP '2013-01-31 10:00:00', NULL, named_struct('x', 1, 'y', 'a')), (2, NULL, NULL, NULL);
--- change
UPDATE visits SET place = named_struct('x', 2, 'y', 'b') WHERE id = 1;
INSERT INTO visits VALUES (3, NULL, NULL, NULL);
--- delta
-- -1 | 1 | {'y': 'a'}
-- +1 | 1 | {'y': 'b'}
-- +1 | 3 | {'y': None}

--- case: a star without fields of fields, and the star of a struct without one
--- covers: Q1 fields of a struct without some
--- spark: DuckDB has no star without a field
SELECT id, s.* EXCEPT (b.y, c), p.place.y AS y FROM (SELECT v.*, named_struct('a', id, 'b', place, 'c', 1) AS s FROM visits AS v) AS u JOIN (SELECT o.* EXCEPT (o.place.x, id), id AS k FROM visits AS o) AS p ON p.k = u.id;
--- before
INSERT INTO visits VALUES (1, TIMESTAMP '2013-01-31 10:00:00', NULL, named_struct('x', 1, 'y', 'a'));
--- change
UPDATE visits SET place = named_struct('x', 2, 'y', 'b') WHERE id = 1;
--- delta
-- -1 | 1 | 1 | {'x': 1} | a
-- +1 | 1 | 1 | {'x': 2} | b

--- case: DROP of a field along a pipe
--- covers: Q29 EXTEND and DROP of a pipe
--- spark: DuckDB has no star without a field
FROM visits |> DROP place.x, tags |> SET id = id * 10 |> SELECT id, place.y AS y, to_json(place) AS j;
--- before
INSERT INTO visits VALUES (1, TIMESTAMP '2013-01-31 10:00:00', NULL, named_struct('x', 1, 'y', 'a'));
--- change
UPDATE visits SET place = named_struct('x', 2, 'y', 'b') WHERE id = 1;
--- delta
-- -1 | 10 | a | {"y":"a"}
-- +1 | 10 | b | {"y":"b"}

--- case: the fields of a struct of a definition, under UNION ALL
--- covers: Q1 fields of a struct without some
WITH v AS (SELECT * FROM visits) SELECT id AS x, 'id' AS y FROM v UNION ALL SELECT place.* FROM v;
--- before
INSERT INTO visits VALUES (1, TIMESTAMP '2024-01-01 00:00:00', NULL, named_struct('x', 5, 'y', 'a'));
--- change
INSERT INTO visits VALUES (2, TIMESTAMP '2024-01-02 00:00:00', NULL, named_struct('x', 6, 'y', 'b'));
DELETE FROM visits WHERE id = 1;
--- delta
-- -1 | 1 | id
-- -1 | 5 | a
-- +1 | 2 | id
-- +1 | 6 | b
