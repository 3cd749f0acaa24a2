-- schedule: 1m
-- description: Routes that are late by ten minutes and more on average, with what they make up aloft.
SELECT
  r.origin,
  r.dest,
  p.name AS destination,
  r.flights,
  r.average_delay,
  r.made_up,
  r.worst_delay
FROM (
  SELECT
    origin,
    dest,
    COUNT(*) AS flights,
    AVG(arr_delay) AS average_delay,
    SUM(made_up) AS made_up,
    MAX(arr_delay) AS worst_delay
  FROM ops.flights
  WHERE status = 'landed'
  GROUP BY origin, dest
  HAVING COUNT(*) >= 20 AND AVG(arr_delay) >= 10
) AS r
LEFT JOIN air.airports AS p ON r.dest = p.faa
