-- schedule: 30s
-- description: Each airline's punctuality, day by day.
SELECT
  carrier,
  airline,
  flight_date,
  COUNT(*) AS landed,
  SUM(is_late) AS late,
  SUM(arr_delay) AS delay_minutes,
  AVG(arr_delay) AS average_delay,
  MAX(arr_delay) AS worst_delay
FROM ops.flights
WHERE status = 'landed'
GROUP BY carrier, airline, flight_date
