-- schedule: 30s
-- description: What each plane has flown; of about one in five nobody knows more than its number.
SELECT
  f.tailnum,
  p.manufacturer,
  p.model,
  p.seats,
  COUNT(*) AS flights,
  SUM(f.distance) AS miles,
  SUM(f.air_time) AS minutes_in_air,
  MAX(f.arrived_at) AS last_arrival
FROM air.flights AS f
LEFT JOIN air.planes AS p ON f.tailnum = p.tailnum
WHERE f.status = 'landed'
GROUP BY f.tailnum, p.manufacturer, p.model, p.seats
