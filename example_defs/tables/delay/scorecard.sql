-- schedule: 1m
-- description: Both sides of an airline's day side by side; its two inputs read the same flights.
SELECT
  d.carrier,
  d.flight_date,
  c.airline,
  d.scheduled,
  d.disrupted,
  COALESCE(c.landed, 0) AS landed,
  COALESCE(c.late, 0) AS late,
  d.scheduled - d.disrupted - COALESCE(c.landed, 0) AS still_to_land
FROM delay.disrupted_days AS d
LEFT JOIN delay.carrier_days AS c ON d.carrier = c.carrier AND d.flight_date = c.flight_date
