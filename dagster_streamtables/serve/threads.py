"""Where subscriptions are read: in a few threads, since reading blocks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

_THREADS = 8
_pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="streamtables-serve")


async def in_thread(call: Callable[[], T]) -> T:
    """Not `asyncio.to_thread`: its threads are shared with everything else in the process."""
    return await asyncio.get_running_loop().run_in_executor(_pool, call)
