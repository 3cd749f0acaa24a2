"""Delta logs and data files, read without Spark."""
