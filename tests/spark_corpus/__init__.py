"""Tests of the harness that runs Spark's own SQL tests."""
