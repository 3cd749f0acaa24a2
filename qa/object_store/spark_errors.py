"""What Spark says of an error."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError


def chain(error: BaseException) -> str:
    """The first lines of the exceptions of Java, from the outer to the inner one.

    What is in brackets happened while the outer one was handled.
    """
    each = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    if each is None:
        return f"{type(error).__name__}: {error}"
    said = [] if isinstance(error, Py4JJavaError) else [type(error).__name__]
    while each is not None:
        beside = [_line(more) for more in each.getSuppressed()]
        said.append(" ".join([_line(each), *(f"[{more}]" for more in beside)]))
        each = each.getCause()
    return " <- ".join(said)


def _line(error: Any) -> str:
    return str(error.toString()).split("\n")[0]
