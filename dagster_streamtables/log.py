"""The logger of this package. No logged text can forge a log line.

Records quote the names of tables, paths and errors, which may hold line breaks and control
characters: these are escaped, and continuation lines are indented. A filter does not apply to child
loggers, so every module uses this logger.
"""

from __future__ import annotations

import logging

from dagster_streamtables.errors import legible

logger = logging.getLogger("dagster_streamtables")


def _escape_record(record: logging.LogRecord) -> bool:
    record.msg, record.args = legible(record.getMessage()).replace("\n", "\n    "), ()
    return True


logger.addFilter(_escape_record)
