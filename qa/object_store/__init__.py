"""Commits to S3: writers of two engines that race on a store with faults.

server.py      moto behind one lock, with an audit and faults; a process of its own
store.py       starting it, and asking it
race.py        rounds of writers on one table each; `verdict.py` counts at the store's audit
cases.py       stores that do what they should not, one after the other
requests.py    what a commit of Spark sends
refreshes.py   stream tables over the store
command.py     `python -m qa.object_store`
"""
