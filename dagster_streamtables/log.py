"""The log of this package: each of its records begins a line, and nothing in it can begin another.

What is logged names tables, paths and errors, which have the words of whoever made them.
"""

from __future__ import annotations

import logging

from dagster_streamtables.errors import legible

logger = logging.getLogger("dagster_streamtables")


def _quoted(record: logging.LogRecord) -> bool:
    record.msg, record.args = legible(record.getMessage()).replace("\n", "\n    "), ()
    return True


logger.addFilter(_quoted)
