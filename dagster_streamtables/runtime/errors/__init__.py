"""Errors of Spark, delta-rs, an object store and the operating system, as errors of this package.

`error_translation` turns one into another and decides who must act; `table_errors` and
`slot_errors` create those that are found without an error of a library.
"""
