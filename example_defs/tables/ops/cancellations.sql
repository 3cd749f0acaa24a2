-- schedule: 30s
-- description: Of each day's flights out of each airport, how many were called off or ended elsewhere.
SELECT
  flight_date,
  origin,
  COUNT(*) AS scheduled,
  SUM(CASE WHEN status = 'cancelled' THEN 1 ELSE 0 END) AS cancelled,
  SUM(CASE WHEN status = 'diverted' THEN 1 ELSE 0 END) AS diverted,
  COUNT(departed_at) AS departed
FROM air.flights
GROUP BY flight_date, origin
