-- schedule: 1m
-- mode: AUTO
-- description: Planes that were put on a schedule and have not arrived anywhere yet.
SELECT
  p.tailnum,
  p.manufacturer,
  p.model,
  COALESCE(p.seats, 0) AS seats
FROM air.planes AS p
LEFT JOIN fleet.plane_use AS u ON p.tailnum = u.tailnum
WHERE u.tailnum IS NULL
