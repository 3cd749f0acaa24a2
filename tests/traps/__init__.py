"""What incremental views have got wrong in practice, each on real Delta tables.

A test is named by the number of its trap, and ends with the proof that the stream table is
its query, run by plain Spark (P16 alone has none). These traps are shown elsewhere, too:

P1    a process that is killed        runtime/test_crash.py (here: what one commit holds)
P14   a view is defined anew          runtime/test_views.py::test_a_changed_view_rebuilds_...
P15   a function's body changes       test_refused.py, "a function of the user's own"
P18   another session time zone       runtime/test_time.py
P19   a scalar subquery of two rows   also runtime/test_failing.py, correlated
P24   a diamond with a side behind    runtime/test_align.py, orchestration/test_diamond.py
P26   a circle of stream tables       orchestration/test_graph.py::test_a_cycle_is_refused_...
P33   MAP                             runtime/test_map_and_variant.py, test_refused.py

Beside them, `test_faults.py`: what disks, files, permissions, memory and a killed Spark do.
"""
