"""Suites that run for hours and judge the product from outside; none is part of `make test`."""
