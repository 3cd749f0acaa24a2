-- schedule: 30s
-- description: How busy each airport was each day, and its busiest hour.
SELECT
  h.airport,
  p.name,
  h.flight_date,
  SUM(h.movements) AS movements,
  MAX(h.movements) AS busiest_hour,
  COUNT(*) AS hours_in_use
FROM ops.airport_hours AS h
LEFT JOIN air.airports AS p ON h.airport = p.faa
GROUP BY h.airport, p.name, h.flight_date
