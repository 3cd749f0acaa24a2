"""What Dagster's instance remembers: runs, materializations, results of checks."""
