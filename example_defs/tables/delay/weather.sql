-- schedule: 1m
-- description: Departure delay by what the weather was at that airport in that hour.
WITH observed AS (
  SELECT
    f.origin,
    f.dep_delay,
    w.wind_speed,
    CASE WHEN w.visib < 3 THEN 'poor' WHEN w.visib < 8 THEN 'fair' ELSE 'good' END AS visibility,
    CASE WHEN w.precip > 0 THEN 'wet' ELSE 'dry' END AS runway
  FROM ops.flights AS f
  JOIN air.weather AS w ON f.origin = w.origin AND f.departure_hour = w.time_hour
  WHERE f.dep_delay IS NOT NULL
)
SELECT
  origin,
  visibility,
  runway,
  COUNT(*) AS departures,
  SUM(dep_delay) AS delay_minutes,
  AVG(dep_delay) AS average_delay,
  AVG(wind_speed) AS average_wind
FROM observed
GROUP BY origin, visibility, runway
