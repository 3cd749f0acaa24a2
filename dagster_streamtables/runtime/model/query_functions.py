"""Functions of the author's own, which queries may call: written in Python, or in SQL.

    @deterministic("bigint")
    def grade(amount): ...

    net = sql_function("net(amount DOUBLE, rate DOUBLE) RETURNS DOUBLE RETURN amount * (1 - rate)")

A stream table names the modules that have them. In its text each call gets a unique name,
``st_fn_grade_3f2a…``, under which `runtime/compute/access.py` registers the function in the session
that runs the text: it hides no function of Spark, and other tables may have another function of
that name. The name changes with the function's source, so the stream tables that call it are
rebuilt.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from dagster_streamtables.compiler import USER, Text, is_of_spark, unrepeatable_word
from dagster_streamtables.errors import InvalidDefinition

F = TypeVar("F", bound=Callable[..., Any])

_RETURNS = "__streamtables_returns__"
_SQL = re.compile(
    r"\s*(?:CREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMPORARY\s+)?FUNCTION\s+)?(?P<name>\w+)\s*"
    r"(?P<rest>\(.*\)\s*RETURNS\s.*?\sRETURN\s+(?P<body>.*))",
    flags=re.I | re.S,
)


@dataclass(frozen=True)
class SqlFunction:
    """A function that `sql_function` declares."""

    name: str
    """The name that queries call."""
    rest: str
    """What follows the name in CREATE FUNCTION."""


@dataclass(frozen=True)
class UserFunction:
    name: str
    registered: str
    """Its name in Spark."""
    rest: str = ""
    """What follows the name of a SQL function in CREATE FUNCTION."""
    function: Callable[..., Any] | None = None
    """A function in Python; None for one in SQL."""
    returns: str = ""
    """The type of its results in Spark's spelling."""


def deterministic(returns: str) -> Callable[[F], F]:
    """Declare a Python function for queries: for equal arguments, its result is always equal.

    Args:
        returns: The type of its result in Spark's spelling, such as ``bigint``.

    A refresh computes the result of a deleted row again, and removes the row that has it. A
    function that differs from call to call makes wrong tables, which `check` finds.
    """

    def mark(function: F) -> F:
        setattr(function, _RETURNS, returns)
        return function

    return mark


def sql_function(text: str) -> SqlFunction:
    """Declare a function in SQL for queries, as CREATE FUNCTION has it.

    Args:
        text: ``name(x INT, …) RETURNS type RETURN expression``.

    Raises:
        InvalidDefinition: The text is no such function, it reads a table, or its result may differ
            from call to call.
    """
    found = _SQL.fullmatch(text.strip().rstrip(";"))
    if found is None:
        raise InvalidDefinition(
            "the text of a SQL function cannot be read",
            where=" ".join(text.split())[:200],
            fix="write name(x INT, …) RETURNS type RETURN expression",
        )
    body = found["body"]
    without_strings = re.sub(r"'(?:[^'\\]|\\.|'')*'", "''", body)
    if re.search(r"\b(SELECT|FROM|TABLE)\b", without_strings, flags=re.I):
        raise InvalidDefinition(
            f"the SQL function {found['name']} reads a table",
            why="changes of that table would not reach the stream tables that call it",
            fix="join the table in the query, or in a view",
        )
    word = unrepeatable_word(body)
    if word is not None:
        raise InvalidDefinition(
            f"the SQL function {found['name']} calls {word}()",
            why="its result may differ from call to call",
            fix="pass the value as an argument",
        )
    return SqlFunction(found["name"].lower(), " ".join(found["rest"].split()))


def check_modules(modules: Sequence[str]) -> tuple[str, ...]:
    """
    Raises:
        InvalidDefinition: One is not the name of a module, or of something in one.
    """
    for each in modules:
        if not re.fullmatch(r"[A-Za-z_][\w.]*(:[A-Za-z_]\w*)?", each):
            raise InvalidDefinition(
                f'"{each}" is not a module with functions',
                fix="write its name as Python imports it: project.functions, or "
                "project.functions:grade for one of them",
            )
    return tuple(modules)


@lru_cache(maxsize=256)
def functions_in(modules: tuple[str, ...]) -> Mapping[str, UserFunction]:
    """The functions of modules, by their names in lower case.

    Raises:
        InvalidDefinition: A module cannot be imported or has none, or two have the same name.
    """
    found: dict[str, UserFunction] = {}
    for each in modules:
        for function in _functions_of(each):
            if found.setdefault(function.name, function) != function:
                raise InvalidDefinition(
                    f"two functions are called {function.name}", fix="rename one of them"
                )
            if is_of_spark(function.name):
                raise InvalidDefinition(
                    f"the function {function.name} is called like one of Spark",
                    why="a reader of the query would take it for that",
                    fix="give it another name",
                )
    return found


def with_functions(text: Text, functions: Mapping[str, UserFunction]) -> Text:
    """The text, in which the functions have the names under which they are registered."""
    tokens = text.tokens
    edits: list[tuple[int, int, str]] = []
    for before, token, following in zip([None, *tokens], tokens, tokens[1:], strict=False):
        function = functions.get(token.text.lower())
        qualified = before is not None and before.text == "."
        if function is not None and following.text == "(" and not qualified:
            edits.append((token.start, token.end + 1, function.registered))
    return text.with_edits(edits)


def match_functions(
    texts: Iterable[str], functions: Mapping[str, UserFunction]
) -> tuple[UserFunction, ...]:
    """The functions whose names are among the words of texts."""
    words = {word.lower() for text in texts for word in re.findall(r"\w+", text)}
    return tuple(each for name, each in functions.items() if name in words)


def _functions_of(reference: str) -> Iterator[UserFunction]:
    name, _, attribute = reference.partition(":")
    try:
        module = importlib.import_module(name)
    except Exception as error:
        raise InvalidDefinition(
            f'the module "{name}" cannot be imported',
            why=f"{type(error).__name__}: {error}",
            fix="correct it, or the setting functions; the folder that holds it must be on "
            "PYTHONPATH, or the project installed",
        ) from error
    found = [
        (name, value)
        for name, value in vars(module).items()
        if attribute in ("", name) and (isinstance(value, SqlFunction) or hasattr(value, _RETURNS))
    ]
    if not found:
        raise InvalidDefinition(
            f'"{reference}" has no function for queries',
            fix="declare it with @deterministic(…) or sql_function(…)",
        )
    yield from (_function(*each) for each in found)


def _function(name: str, value: Any) -> UserFunction:
    if isinstance(value, SqlFunction):
        return UserFunction(value.name, _registration_name(value.name, value.rest), value.rest)
    name, returns = name.lower(), str(getattr(value, _RETURNS))
    return UserFunction(
        name, _registration_name(name, returns, _source(value)), function=value, returns=returns
    )


def _source(function: Callable[..., Any]) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):  # defined where there is no file
        return repr(getattr(function, "__qualname__", function))


def _registration_name(name: str, *about: str) -> str:
    digest = hashlib.sha256("\x00".join(about).encode()).hexdigest()[:12]
    return f"{USER}{name}_{digest}"
