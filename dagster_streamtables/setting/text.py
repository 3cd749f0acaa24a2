"""Reads values from texts, in files and environment variables; durations with a unit among them."""

from __future__ import annotations

import contextlib
import enum
import os
import re
import typing
from collections.abc import Mapping
from typing import Any

from dagster_streamtables.setting.check import normalize, plain, require

_UNITS = {"ms": 0.001, "": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def seconds_in(text: str) -> float | None:
    """The seconds of a duration; None if it is not one.

    >>> seconds_in("10s"), seconds_in("1.5"), seconds_in("500ms"), seconds_in("7d"), seconds_in("x")
    (10.0, 1.5, 0.5, 604800.0, None)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|)", text.strip())
    return None if found is None else float(found[1]) * _UNITS[found[2]]


def read_text(name: str, hint: Any, text: str) -> Any:
    """The value of a setting from its text: for a list, parts between commas; for a mapping, pairs
    such as ``tier=gold``.

    Raises:
        InvalidDefinition: The text is not a valid value.
    """
    found = _value(plain(hint), text)
    require(name, hint, found, said=text)
    return normalize(hint, found)


def read_environment(name: str, hint: Any, default: Any) -> Any:
    """The value of an environment variable; the default if it is empty or not set.

    Raises:
        InvalidDefinition: Its text is not a valid value.
    """
    text = os.environ.get(name, "").strip()
    return read_text(name, hint, text) if text else default


def _value(kind: Any, text: str) -> Any:
    if isinstance(kind, type) and issubclass(kind, enum.StrEnum):
        return next((each for each in kind if each.lower() == text.lower()), text)
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    if kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    origin = typing.get_origin(kind)
    if origin is tuple:
        return tuple(_parts(text))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        pairs = (part.partition("=") for part in _parts(text))
        return {key.strip(): value.strip() for key, _, value in pairs}
    return text


def _parts(text: str) -> list[str]:
    """The parts between commas, without SQL quotes."""
    stripped = (part.strip().strip('`"') for part in text.split(","))
    return [part for part in stripped if part]
