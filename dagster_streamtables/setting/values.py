"""Checks values against annotations, and reads them from texts.

A dataclass checks its fields with `normalize_fields`, a function its arguments with
`check_arguments`. Values that Python would accept as true, such as ``initialize="no"``, or as a
number, such as ``driver_rows=True``, are refused.
"""

from __future__ import annotations

import collections.abc
import contextlib
import difflib
import enum
import functools
import inspect
import math
import os
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union

from dagster_streamtables.errors import InvalidDefinition


@dataclass(frozen=True)
class Range:
    """An interval of numbers, or of timedeltas, in seconds."""

    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    """Whether `low` itself is excluded."""

    def __contains__(self, value: Any) -> bool:
        number = value.total_seconds() if isinstance(value, timedelta) else value
        return (self.low < number if self.above else self.low <= number) and number <= self.high

    def __str__(self) -> str:
        if self.high == math.inf:
            return f"more than {self.low:g}" if self.above else f"{self.low:g} or more"
        return f"{'above' if self.above else 'from'} {self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class Predicate:
    """Values with a property that a type cannot express."""

    holds: Callable[[Any], bool]
    words: str

    def __contains__(self, value: Any) -> bool:
        return self.holds(value)

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True)
class Normalizer:
    """Values that a function normalizes; it raises for invalid ones."""

    function: Callable[[Any], Any]


@dataclass(frozen=True)
class Display:
    """How editors and the documentation show a setting."""

    examples: tuple[Any, ...] = ()
    default: str = ""
    """The default in words, if its value does not explain itself."""


class _Internal:
    """The mark of a field that the package fills in: it is not a setting in files or YAML."""


NON_EMPTY = Predicate(lambda value: bool(str(value).strip()), "not empty")
INTERNAL = _Internal()
Bound = Range | Predicate


P = ParamSpec("P")
R = TypeVar("R")

_WORDS: Mapping[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text",
    Path: "a path",
    timedelta: "a timedelta",
    type(None): "None",
}
_CONTAINERS = (tuple, list, set, frozenset)


def normalize_fields(values: Any, about: str = "") -> None:
    """Check the fields of a dataclass and normalize them, in its `__post_init__`: texts become
    members of an enum, lists become tuples, and `Normalizer` functions are applied. `about` is the
    name of the stream table, for errors. Raises `InvalidDefinition` if a field does not match its
    annotation."""
    hints = hints_of(type(values))
    for field in fields(values):
        value = getattr(values, field.name)
        require(field.name, hints[field.name], value, about)
        try:
            kept = normalize(hints[field.name], value)
        except InvalidDefinition as error:
            raise (error.about(about) if about else error) from None
        if kept is not value:
            object.__setattr__(values, field.name, kept)


def check_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """A decorator that refuses arguments which do not match the annotations of the function. Raises
    `InvalidDefinition` if an argument does not match."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        given = signature.bind(*args, **kwargs).arguments
        hints = hints_of(function)
        for name, value in given.items():
            more = signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD
            if name in hints and not more:
                require(name, hints[name], value)
        return function(*args, **kwargs)

    return call


def normalize(hint: Any, value: Any) -> Any:
    """The normalized form of a value that matches its annotation. Raises `InvalidDefinition` if a
    `Normalizer` of the annotation refuses it."""
    kind = plain(hint)
    if value is None:
        return value
    if isinstance(kind, type) and issubclass(kind, enum.StrEnum):
        value = kind(value)
    elif typing.get_origin(kind) is tuple and not isinstance(value, tuple):
        value = tuple(value)
    for mark in typing.get_args(hint) if typing.get_origin(hint) is Annotated else ():
        value = mark.function(value) if isinstance(mark, Normalizer) else value
    return value


def require(name: str, hint: Any, value: Any, about: str = "", said: str | None = None) -> None:
    """Refuse a value of the setting `name` that does not match its annotation. `about` is the
    stream table, and `said` the text from which the value was read. Raises `InvalidDefinition` if
    it does not match."""
    if _is(hint, value):
        return
    kind = plain(hint)
    value = value if said is None else said
    shown = f'"{value}"' if isinstance(value, str) else repr(value)
    if isinstance(kind, type) and issubclass(kind, enum.StrEnum):
        upper = {each.upper(): each for each in kind}
        near = difflib.get_close_matches(str(value).upper(), upper, n=1)
        choices = ", ".join(kind)
        error = InvalidDefinition(
            f'there is no {name} "{value}"',
            why=f"it is one of {choices}" if near else "",
            fix=f"write {upper[near[0]]}" if near else f"choose one of {choices}",
        )
    else:
        error = InvalidDefinition(
            f"the setting {name} is {shown[:200]}",
            fix=f"give {describe(hint)}",
        )
    raise error.about(about) if about else error


@functools.cache
def hints_of(owner: Any) -> Mapping[str, Any]:
    """Annotations, evaluated one by one. One with a name that only a type checker imports becomes
    `Any`."""
    found: dict[str, Any] = {}
    owners = reversed(owner.__mro__) if isinstance(owner, type) else (owner,)
    for each in owners:
        names = vars(inspect.getmodule(each) or typing)
        for name, hint in getattr(each, "__annotations__", {}).items():
            try:
                found[name] = eval(hint, dict(names)) if isinstance(hint, str) else hint
            except NameError:
                found[name] = Any
    return found


def plain(hint: Any) -> Any:
    """The type alone, without annotations and without None."""
    if typing.get_origin(hint) is Annotated:
        return plain(typing.get_args(hint)[0])
    if _is_union(hint):
        left = [each for each in typing.get_args(hint) if each is not type(None)]
        return plain(left[0]) if len(left) == 1 else hint
    return hint


def allows_none(hint: Any) -> bool:
    return _is(hint, None)


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (Union, types.UnionType)


def _is(hint: Any, value: Any) -> bool:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        bounds = (each for each in args[1:] if isinstance(each, Bound))
        return _is(args[0], value) and (value is None or all(value in each for each in bounds))
    if _is_union(hint):
        return any(_is(each, value) for each in args)
    if origin is Literal:
        return value in args
    if origin is collections.abc.Callable:
        return callable(value)
    if origin is not None:
        return isinstance(origin, type) and _holds(origin, args, value)
    if hint is Any:
        return True
    if hint is None or not isinstance(hint, type):
        return hint is not None or value is None
    return _is_a(hint, value)


def _is_a(kind: type, value: Any) -> bool:
    if kind in (int, float):
        number = isinstance(value, Integral if kind is int else Real)
        return number and not isinstance(value, bool) and math.isfinite(typing.cast(float, value))
    if issubclass(kind, enum.StrEnum) and isinstance(value, str):
        return value in list(kind)
    return isinstance(value, kind)


def _holds(origin: type, args: tuple[Any, ...], value: Any) -> bool:
    """Whether a value is such a collection with matching items. Iterators are refused: the check
    would consume them."""
    if issubclass(origin, Mapping):
        mapping: Any = value
        return isinstance(value, Mapping) and all(
            _is(args[0], key) and _is(args[1], each) for key, each in mapping.items()
        )
    if not issubclass(origin, Iterable):
        return isinstance(value, origin)
    items: Any = value if isinstance(value, _CONTAINERS) else ()
    is_one = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    return is_one and all(_is(args[0], each) for each in items)


def describe(hint: Any) -> str:
    """
    >>> from dagster_streamtables.setting import Range
    >>> describe(Annotated[int, Range(0)] | None)
    'a whole number, 0 or more, or None'
    """
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        said = [str(each) for each in args[1:] if isinstance(each, Bound)]
        return ", ".join([describe(args[0]), *said])
    if _is_union(hint):
        first, *more = [describe(each) for each in args]
        comma = "," if "," in first else ""
        return f"{first}{comma} or {' or '.join(more)}"
    if origin is Literal:
        return "one of " + ", ".join(map(str, args))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "a mapping"
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return f"a list, each item {describe(args[0])}"
    if origin is collections.abc.Callable:
        return "a function"
    return _WORDS.get(hint) or f"a {getattr(hint, '__name__', hint)}"


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
    such as ``tier=gold``. Raises `InvalidDefinition` if the text is not a valid value."""
    found = _value(plain(hint), text)
    require(name, hint, found, said=text)
    return normalize(hint, found)


def read_environment(name: str, hint: Any, default: Any) -> Any:
    """The value of an environment variable; the default if it is empty or not set. Raises
    `InvalidDefinition` if its text is not a valid value."""
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
