"""Random histories of a Delta table, and every kind of stream table over it.

A history is a table that is made in one way or another, and steps: everything that Spark and
delta-rs can do to a table and to its folder. After each step every stream table is refreshed and
compared with plain Spark, which runs the same queries over the same version.

    rows.py       values of every type, the extreme ones among them
    world.py      the folder with the table, both engines, and what a step finds there
    creating.py, writing.py, layout.py, schema.py, features.py, folders.py
                  the steps
    steps.py      all of them, and which may follow which
    roots.py      the stream tables: one for each kind of root
    oracle.py     one Spark statement that compares them all
    history.py    a history as a value: made, run, judged
    shrink.py     the steps that a failure needs
    tally.py      what was covered
    relapse.py    bugs of the past put back: does the generator find them, and how soon?
"""
