-- schedule: 10s
-- dialect: postgres
-- max_consecutive_errors: 0
-- description: What a head of each division costs. A division without anybody makes its refresh fail.
SELECT division, payroll / headcount AS pay_per_head
FROM org.department_report
