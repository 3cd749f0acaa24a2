"""Errors of Spark, delta-rs, an object store and the operating system, as errors of this package.

`translate` turns one into another, `verdict` says who must act, `tables` makes those that are found
without an error of a library.
"""
