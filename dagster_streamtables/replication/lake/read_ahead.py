"""Read with a thread of one's own: delta-rs cannot read while it asks for rows that it writes."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any, TypeVar

_Item = TypeVar("_Item")
_LOOK = 0.1
"""Seconds between two looks at whether the rows are still wanted."""


def read_ahead(items: Iterator[_Item], ahead: int = 2) -> Iterator[_Item]:
    """The same items, made by a thread that is a few of them ahead.

    It ends with the items, with an error, which is raised here, or when nobody wants more.
    """
    made: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(ahead)
    over = threading.Event()
    end = object()

    def put(item: Any, error: BaseException | None = None) -> bool:
        while not over.is_set():
            try:
                made.put((item, error), timeout=_LOOK)
            except queue.Full:
                continue
            return True
        return False

    def make() -> None:
        try:
            for item in items:
                if not put(item):
                    return
            put(end)
        except BaseException as error:
            put(None, error)

    thread = threading.Thread(target=make, daemon=True)
    thread.start()
    try:
        while True:
            item, error = made.get()
            if error is not None:
                raise error
            if item is end:
                return
            yield item
    finally:
        over.set()
        if threading.current_thread() is not thread:
            thread.join()
