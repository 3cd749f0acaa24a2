"""Refreshes that race: processes and threads, over one folder, on two Spark servers.

Every version that any of them commits is kept in the log, with the frontier that it claims. In the
end each is compared with its query over exactly that frontier: a change that is applied twice and
taken back a version later is found, too.

    lake.py       the sources, how they change, and the stream tables over them
    refreshers.py processes, each with a `Lake` that its threads share
    verdict.py    every committed version against plain Spark
    command.py    `python -m qa.races`
"""
