"""What a setting may be, declared by its annotation and checked in one place.

    max_consecutive_errors: Annotated[int, Range(0)] = 3

A dataclass checks its fields with `require_fields`, a function its arguments with `checked`, and a
text, as a file or the environment has it, becomes a value with `read_text`. What Python would take
for true, such as ``initialize="no"``, or for a number, such as ``driver_rows=True``, is refused.
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
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union

from dagster_streamtables.errors import InvalidDefinition

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


@dataclass(frozen=True)
class Range:
    """Numbers, or timedeltas in seconds, of an interval."""

    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    """Whether `low` itself is left out."""

    def __contains__(self, value: Any) -> bool:
        number = value.total_seconds() if isinstance(value, timedelta) else value
        return (self.low < number if self.above else self.low <= number) and number <= self.high

    def __str__(self) -> str:
        if self.high == math.inf:
            return f"more than {self.low:g}" if self.above else f"{self.low:g} or more"
        return f"{'above' if self.above else 'from'} {self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class Where:
    """Values with a property that no type tells."""

    holds: Callable[[Any], bool]
    words: str

    def __contains__(self, value: Any) -> bool:
        return self.holds(value)

    def __str__(self) -> str:
        return self.words


FILLED = Where(lambda value: bool(str(value).strip()), "not empty")


def require_fields(values: Any, about: str = "") -> None:
    """Check the fields of a dataclass, for its ``__post_init__``.

    Args:
        values: The object.
        about: The stream table that it declares.

    Raises:
        InvalidDefinition: A field is not what its annotation says.
    """
    hints = _hints(type(values))
    for field in fields(values):
        require(field.name, hints[field.name], getattr(values, field.name), about)


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Refuse arguments that are not what the function's annotations say.

    Raises:
        InvalidDefinition: One is not.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        given = signature.bind(*args, **kwargs).arguments
        hints = _hints(function)
        for name, value in given.items():
            more = signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD
            if name in hints and not more:
                require(name, hints[name], value)
        return function(*args, **kwargs)

    return call


def read_text(name: str, hint: Any, text: str) -> Any:
    """The value that a text means for a setting.

    Raises:
        InvalidDefinition: The text is no such value.
    """
    kind = _plain(hint)
    found: Any = text
    if isinstance(kind, type) and issubclass(kind, enum.StrEnum):
        found = next((each for each in kind if each.lower() == text.lower()), text)
    elif kind is bool:
        found = {"true": True, "false": False}.get(text.lower(), text)
    elif kind in (int, float):
        with contextlib.suppress(ValueError):
            found = kind(text)
    require(name, hint, found, said=text)
    return found


def read_environment(name: str, hint: Any, default: Any) -> Any:
    """The value of a variable of the environment; the default where it is empty or not set.

    Raises:
        InvalidDefinition: Its text is no such value.
    """
    text = os.environ.get(name, "").strip()
    return read_text(name, hint, text) if text else default


def hints_of(kind: type) -> Mapping[str, Any]:
    """The annotations of a class, for `read_text`."""
    return _hints(kind)


def require(name: str, hint: Any, value: Any, about: str = "", said: str | None = None) -> None:
    """Refuse a value that is not what an annotation says.

    Args:
        name: Of the setting.
        hint: The annotation.
        value: What it is given.
        about: The stream table that it is of.
        said: The text that the value was read from.

    Raises:
        InvalidDefinition: It is not.
    """
    if _is(hint, value):
        return
    kind = _plain(hint)
    value = value if said is None else said
    shown = f'"{value}"' if isinstance(value, str) else repr(value)
    if isinstance(kind, type) and issubclass(kind, enum.StrEnum):
        near = difflib.get_close_matches(str(value).upper(), [each.upper() for each in kind], n=1)
        choices = ", ".join(kind)
        error = InvalidDefinition(
            f'there is no {name} "{value}"',
            why=f"it is one of {choices}" if near else "",
            fix=f"write {read_text(name, kind, near[0])}" if near else f"choose one of {choices}",
        )
    else:
        error = InvalidDefinition(
            f"the setting {name} is {shown[:200]}",
            fix=f"give {_described(hint)}",
        )
    raise error.about(about) if about else error


@functools.cache
def _hints(owner: Any) -> Mapping[str, Any]:
    """Annotations, evaluated one by one: a name that only a type checker imports says nothing."""
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


def _plain(hint: Any) -> Any:
    """The type, without what is said about it, and without None."""
    if typing.get_origin(hint) is Annotated:
        return _plain(typing.get_args(hint)[0])
    if _is_union(hint):
        left = [each for each in typing.get_args(hint) if each is not type(None)]
        return _plain(left[0]) if len(left) == 1 else hint
    return hint


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (Union, types.UnionType)


def _is(hint: Any, value: Any) -> bool:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        bounds = (each for each in args[1:] if isinstance(each, Range | Where))
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
    """Whether it is such a collection, and what it holds is right, which an iterator would lose."""
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


def _described(hint: Any) -> str:
    """
    >>> _described(Annotated[int, Range(0)] | None)
    'a whole number, 0 or more, or None'
    """
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        said = [str(each) for each in args[1:] if isinstance(each, Range | Where)]
        return ", ".join([_described(args[0]), *said])
    if _is_union(hint):
        first, *more = [_described(each) for each in args]
        comma = "," if "," in first else ""
        return f"{first}{comma} or {' or '.join(more)}"
    if origin is Literal:
        return "one of " + ", ".join(map(str, args))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "a mapping"
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return f"a list, each of it {_described(args[0])}"
    if origin is collections.abc.Callable:
        return "a function"
    return _WORDS.get(hint) or f"a {getattr(hint, '__name__', hint)}"
