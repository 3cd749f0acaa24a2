-- schedule: 30s
-- description: Each airline's scheduled and disrupted flights, day by day.
SELECT
  carrier,
  flight_date,
  COUNT(*) AS scheduled,
  SUM(is_disrupted) AS disrupted
FROM ops.flights
GROUP BY carrier, flight_date
