"""What a commit of Spark sends to the store, with each log store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from statistics import median

from qa.object_store.spark import LogStore, session
from qa.object_store.store import AuditedStore

_Requests = Counter[tuple[str, ...]]


def requests(store: AuditedStore, statements: int) -> None:
    """Count the requests of so many INSERTs of a row; the first one stands apart."""
    # In this order: the properties of the first session are those of the JVM for ever.
    for log_store in (LogStore.default, LogStore.ours):
        first, *others = _counted(store, log_store, statements + 1)
        print(f"{log_store}: first {_by_operation(first)}")
        totals = [_by_operation(each) for each in others]
        names = sorted({name for each in totals for name in each})
        medians = {name: median(each[name] for each in totals) for name in names}
        print(f"{log_store}: median {medians}")
        for key in sorted({key for each in others for key in each}):
            number = median(each[key] for each in others)
            if number:
                print(f"  {number:.0f} {' '.join(key)}")


def _counted(store: AuditedStore, log_store: LogStore, statements: int) -> Iterator[_Requests]:
    bucket = f"requests-{log_store}"
    place = store.make_table(bucket)
    spark = session(store, log_store)
    try:
        spark.sql(f"SELECT * FROM delta.`{place}`").collect()
        before = store.counts(bucket)
        for number in range(statements):
            spark.sql(f"INSERT INTO delta.`{place}` VALUES ('{number}')")
            after = store.counts(bucket)
            yield after - before
            before = after
    finally:
        spark.stop()


def _by_operation(requests: _Requests) -> Counter[str]:
    found: Counter[str] = Counter()
    for (operation, *_), number in requests.items():
        found[operation] += number
        found["all"] += number
    return found
