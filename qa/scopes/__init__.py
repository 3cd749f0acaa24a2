"""Random queries full of names, by Spark's analysis and rows."""
