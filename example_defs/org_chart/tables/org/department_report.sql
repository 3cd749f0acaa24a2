-- schedule: 10s
-- dialect: postgres
-- description: Headcount and payroll of each division, with all departments below it.
SELECT
  SPLIT_PART(path, ' > ', 2) AS division,
  SUM(headcount) AS headcount,
  SUM(total_salary) AS payroll
FROM org.department_stats
WHERE depth >= 1
GROUP BY 1
