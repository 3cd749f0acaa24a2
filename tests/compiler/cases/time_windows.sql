--- case: counts of ten minutes
--- covers: Q30 window() of one length
--- spark: DuckDB has no window()
SELECT DATE_FORMAT(window.start, 'HH:mm') AS s, DATE_FORMAT(window.end, 'HH:mm') AS e, COUNT(*) AS n FROM visits GROUP BY window(happened, '10 minutes');
--- before
INSERT INTO visits VALUES (1, '2013-01-31 10:00:00', NULL, NULL), (2, '2013-01-31 10:09:00', NULL, NULL), (3, NULL, NULL, NULL);
--- change
INSERT INTO visits VALUES (4, '2013-01-31 10:09:00', NULL, NULL), (5, '2013-01-31 10:10:00', NULL, NULL);
--- delta
-- -1 | 10:00 | 10:10 | 2
-- +1 | 10:00 | 10:10 | 3
-- +1 | 10:10 | 10:20 | 1

--- case: windows that slide
--- covers: Q30 window() that slides
--- spark: DuckDB has no window()
SELECT id, DATE_FORMAT(window.start, 'HH:mm') AS s, SUM(id) AS n FROM visits GROUP BY id, window(happened, '10 minutes', '5 minutes');
--- before
INSERT INTO visits VALUES (1, '2013-01-31 10:03:00', NULL, NULL);
--- change
UPDATE visits SET happened = '2013-01-31 10:08:00';
--- delta
-- -1 | 1 | 09:55 | 1
-- +1 | 1 | 10:05 | 1

--- case: windows whose slide does not divide their length
--- covers: Q30 window() that slides
--- spark: DuckDB has no window()
SELECT id, DATE_FORMAT(window(happened, '10 minutes', '4 minutes', '1 minute').start, 'HH:mm') AS s FROM visits;
--- before
INSERT INTO visits VALUES (1, '2013-01-31 10:00:00', NULL, NULL);
--- change
INSERT INTO visits VALUES (2, '2013-01-31 10:04:00', NULL, NULL);
--- delta
-- +1 | 2 | 09:57
-- +1 | 2 | 10:01

--- case: windows of dates, joined
--- covers: Q30 window() of a date
--- spark: DuckDB has no window()
SELECT DATE_FORMAT(window.start, 'yyyy-MM-dd') AS s, COUNT(*) AS n FROM sales AS a, regions AS r WHERE a.product = r.name AND r.country > 'a' GROUP BY window(a.sold, '7 days', '7 days', '4 days');
--- before
INSERT INTO regions VALUES ('x', 'b');
INSERT INTO sales VALUES ('x', 1, 1, '2013-01-31', true);
--- change
INSERT INTO sales VALUES ('x', 1, 1, '2013-01-28', true), ('y', 1, 1, '2013-01-28', true);
--- delta
-- -1 | 2013-01-28 | 1
-- +1 | 2013-01-28 | 2

--- case: windows of times without a zone
--- covers: Q30 window() of TIMESTAMP_NTZ
--- spark: DuckDB has no window()
SELECT DATE_FORMAT(window.end, 'HH:mm') AS e, COUNT(*) AS n FROM (SELECT CAST(happened AS TIMESTAMP_NTZ) AS t FROM visits) AS v GROUP BY window(t, '90 seconds', '1 minute');
--- before
INSERT INTO visits VALUES (1, '2013-01-31 10:00:00', NULL, NULL);
--- change
INSERT INTO visits VALUES (2, '2013-01-31 10:02:00', NULL, NULL);
--- delta
-- +1 | 10:02 | 1
-- +1 | 10:03 | 1

--- case: a subquery with windows
--- covers: Q30 window() of one length
--- spark: DuckDB has no window()
SELECT DATE_FORMAT(w.start, 'HH:mm') AS s, COUNT(*) AS n FROM (SELECT *, window(happened, '1 hour') AS w FROM visits) AS v GROUP BY w.start;
--- before
INSERT INTO visits VALUES (1, '2013-01-31 10:00:00', NULL, NULL);
--- change
INSERT INTO visits VALUES (2, '2013-01-31 10:59:00', NULL, NULL), (3, '2013-01-31 11:00:00', NULL, NULL);
--- delta
-- -1 | 10:00 | 1
-- +1 | 10:00 | 2
-- +1 | 11:00 | 1

--- case: sessions
--- covers: Q30 session_window()
--- spark: DuckDB has no window()
SELECT id, DATE_FORMAT(session_window.start, 'HH:mm') AS s, DATE_FORMAT(session_window.end, 'HH:mm') AS e, COUNT(*) AS n FROM visits GROUP BY id, session_window(happened, '5 minutes');
--- before
INSERT INTO visits VALUES (1, '2013-01-31 10:00:00', NULL, NULL), (1, '2013-01-31 10:08:00', NULL, NULL), (2, '2013-01-31 10:04:00', NULL, NULL), (1, NULL, NULL, NULL);
--- change
INSERT INTO visits VALUES (1, '2013-01-31 10:05:00', NULL, NULL);
--- delta
-- -1 | 1 | 10:00 | 10:05 | 1
-- -1 | 1 | 10:08 | 10:13 | 1
-- +1 | 1 | 10:00 | 10:13 | 3

--- case: sessions of one sequence, whose gap depends on the row
--- covers: Q30 session_window()
--- spark: DuckDB has no window()
SELECT DATE_FORMAT(session_window.start, 'HH:mm') AS s, SUM(id) AS n FROM visits GROUP BY session_window(happened, CASE WHEN id = 1 THEN '30 minutes' ELSE '1 minute' END);
--- before
INSERT INTO visits VALUES (1, '2013-01-31 10:00:00', NULL, NULL), (2, '2013-01-31 10:20:00', NULL, NULL), (2, '2013-01-31 10:25:00', NULL, NULL), (2, '2013-01-31 10:40:00', NULL, NULL);
--- change
DELETE FROM visits WHERE id = 1;
--- delta
-- -1 | 10:00 | 5
-- +1 | 10:20 | 2
-- +1 | 10:25 | 2

--- case: the session of each row alone
--- covers: Q30 session_window()
--- spark: DuckDB has no window()
SELECT id, DATE_FORMAT(session_window(happened, '1 day').end, 'MM-dd HH:mm') AS e FROM visits;
--- before
INSERT INTO visits VALUES (1, '2013-01-31 10:00:00', NULL, NULL);
--- change
INSERT INTO visits VALUES (2, '2013-01-31 10:05:00', NULL, NULL), (3, NULL, NULL, NULL);
--- delta
-- +1 | 2 | 02-01 10:05
