-- schedule: 20s
-- description: Every flight with its airline's name, the hour it is due, and whether it is late.
SELECT
  f.flight_id,
  f.flight_date,
  f.carrier,
  a.name AS airline,
  f.flight,
  f.tailnum,
  f.origin,
  f.dest,
  f.distance,
  f.scheduled_departure,
  date_trunc('hour', f.scheduled_departure) AS departure_hour,
  f.arrived_at,
  date_trunc('hour', f.arrived_at) AS arrival_hour,
  f.dep_delay,
  f.arr_delay,
  f.dep_delay - f.arr_delay AS made_up,
  f.status,
  CASE WHEN f.arr_delay >= 15 THEN 1 ELSE 0 END AS is_late,
  CASE WHEN f.status IN ('cancelled', 'diverted') THEN 1 ELSE 0 END AS is_disrupted
FROM air.flights AS f
JOIN air.airlines AS a ON f.carrier = a.carrier
