-- description: Movements at each airport in each hour. CALCULATED: as fresh as its readers ask.
SELECT
  m.airport,
  m.flight_date,
  m.hour,
  SUM(m.departure) AS departures,
  SUM(m.arrival) AS arrivals,
  COUNT(*) AS movements
FROM (
  SELECT origin AS airport, flight_date, departure_hour AS hour, 1 AS departure, 0 AS arrival
  FROM ops.flights
  WHERE status <> 'cancelled'
  UNION ALL
  SELECT dest AS airport, flight_date, arrival_hour AS hour, 0 AS departure, 1 AS arrival
  FROM ops.flights
  WHERE status = 'landed'
) AS m
GROUP BY m.airport, m.flight_date, m.hour
