-- dialect: postgres
-- description: Who works in each department itself, and what they earn.
SELECT
  t.id AS department_id,
  t.name AS department,
  t.path,
  t.depth,
  COUNT(e.id) AS headcount,
  COALESCE(SUM(e.salary), 0) AS total_salary,
  AVG(CAST(e.salary AS DOUBLE PRECISION)) AS average_salary
FROM org.department_tree AS t
LEFT JOIN hr.employees AS e ON e.department_id = t.id
GROUP BY t.id, t.name, t.path, t.depth
