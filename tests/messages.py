"""Every message that an error of this package can begin with, found in its code.

A message is the first argument of an error, or of a function that makes one. What is filled in is
written as an ellipsis: ``column "…" does not exist``.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import dagster_streamtables
from dagster_streamtables.compiler.text.places import Refusal
from dagster_streamtables.errors import StreamTablesError

PACKAGE = Path(dagster_streamtables.__file__).parent
GAP = "…"

# Functions that make an error: which of their arguments is the message, and what it becomes.
MAKERS: dict[str, tuple[int, str]] = {
    "_at": (2, "{}"),
    "_no_rule": (2, "{} is not supported yet"),
    "unsupported": (1, "{} is not supported yet"),
    "_recursion_refusal": (1, "{} is not maintained"),
    "_tag": (0, "{}"),
}
_PASSED_ON = {"what", "problem"}
"""Arguments that are the message of an error that was caught, or stored."""


@cache
def classes() -> frozenset[str]:
    """The names of all errors."""
    for module in pkgutil.walk_packages([str(PACKAGE)], "dagster_streamtables."):
        if not module.name.endswith("__main__"):  # which would run the command line
            importlib.import_module(module.name)
    found: set[type] = {StreamTablesError, Refusal}
    todo = list(found)
    while todo:
        todo += (below := todo.pop().__subclasses__())
        found.update(below)
    return frozenset(each.__name__ for each in found)


@cache
def messages() -> dict[str, str]:
    """Each message → the first place in the code that has it."""
    found: dict[str, str] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        for line, text in _messages(tree):
            found.setdefault(text, f"{path.relative_to(PACKAGE)}:{line}")
    return found


def unread() -> list[str]:
    """Places that make an error whose message this module cannot read."""
    found: list[str] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        for scope in _scopes(tree):
            for call in _calls(scope):
                message = _message(call)
                if message is not None and not _is_known(message[0], scope, tree):
                    found.append(f"{path.relative_to(PACKAGE)}:{call.lineno}")
    return found


def _is_known(node: ast.expr, scope: ast.Module | ast.FunctionDef, tree: ast.Module) -> bool:
    """Whether it can be read here, or is that of an error that is passed on."""
    match node:
        case ast.Attribute(attr=name):
            return name in _PASSED_ON
        case ast.Call(func=ast.Name(id="str")):
            return True
        case ast.Name(id=name) if isinstance(scope, ast.FunctionDef):
            passed = {each.arg for each in (*scope.args.args, *scope.args.kwonlyargs)}
            if name in passed:
                return scope.name == "_rebuild"
    return bool(list(texts(node, scope, tree)))


def _scopes(tree: ast.Module) -> list[ast.Module | ast.FunctionDef]:
    """Where errors are made; those that a maker makes are found where it is called."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return [tree, *(each for each in functions if each.name not in MAKERS)]


def _messages(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for scope in _scopes(tree):
        for call in _calls(scope):
            yield from ((call.lineno, text) for text in _of_call(call, scope, tree))


def _calls(scope: ast.Module | ast.FunctionDef) -> Iterator[ast.Call]:
    """The calls of a scope that are in no function inside it."""
    todo: list[ast.AST] = list(ast.iter_child_nodes(scope))
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Call):
            yield node
        if not isinstance(node, ast.FunctionDef):
            todo += ast.iter_child_nodes(node)


def _of_call(
    call: ast.Call, scope: ast.Module | ast.FunctionDef, tree: ast.Module
) -> Iterator[str]:
    message = _message(call)
    if message is not None:
        argument, form = message
        for text in texts(argument, scope, tree):
            yield re.sub(rf"{GAP}+", GAP, form.format(text))


def _message(call: ast.Call) -> tuple[ast.expr, str] | None:
    """The argument of a call that makes an error, and what the message is made of it."""
    name = getattr(call.func, "id", None) or getattr(call.func, "attr", "")
    if name == "Failure":
        return next((each.value, "{}") for each in call.keywords if each.arg == "description")
    places = {"Refusal": (1, "{}"), "Mistake": (1, "{}"), **MAKERS}
    place, form = places.get(name, (0, "{}"))
    is_other = name == "_at" and not call.keywords  # another function of that name
    if name not in classes() | set(MAKERS) or len(call.args) <= place or is_other:
        return None
    return call.args[place], form


def texts(node: ast.expr, scope: ast.Module | ast.FunctionDef, tree: ast.Module) -> Iterable[str]:
    """What an expression for a message may come to."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=parts):
            return ["".join(p.value if isinstance(p, ast.Constant) else GAP for p in parts)]
        case ast.IfExp(body=one, orelse=other):
            return [*texts(one, scope, tree), *texts(other, scope, tree)]
        case ast.BinOp(left=one, right=other, op=ast.Add()):
            first, second = (list(texts(each, scope, tree)) for each in (one, other))
            return [a + b for a in first for b in second]
        case ast.Name(id=name):
            return list(_assigned(name, scope, tree))
    return []


def _assigned(name: str, scope: ast.Module | ast.FunctionDef, tree: ast.Module) -> Iterator[str]:
    """What is assigned to a name in a function; of a loop over a constant, what that holds."""
    for node in ast.walk(scope):
        targets = node.targets if isinstance(node, ast.Assign) else []
        for target in targets:
            if isinstance(target, ast.Name) and target.id == name:
                yield from texts(node.value, scope, tree)
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Subscript):
                yield from _of_table(name, target, node.value.value, tree)
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                for each, value in zip(target.elts, node.value.elts, strict=True):
                    if isinstance(each, ast.Name) and each.id == name:
                        yield from texts(value, scope, tree)
        if isinstance(node, ast.For) and isinstance(node.target, ast.Tuple):
            yield from _of_table(name, node.target, node.iter, tree)


def _of_table(name: str, target: ast.Tuple, table: ast.expr, tree: ast.Module) -> Iterator[str]:
    """A column of a constant of the module: a dict of tuples, or a tuple of tuples."""
    names = [each.id for each in target.elts if isinstance(each, ast.Name)]
    if name not in names or not isinstance(table, ast.Name):
        return
    for node in tree.body:
        assigned = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if not any(isinstance(each, ast.Name) and each.id == table.id for each in assigned):
            continue
        value = getattr(node, "value", None)
        rows = value.values if isinstance(value, ast.Dict) else getattr(value, "elts", [])
        for row in rows:
            row = _constant(row, tree)
            if isinstance(row, ast.Tuple):
                yield from texts(row.elts[names.index(name)], tree, tree)


def _constant(node: ast.expr, tree: ast.Module) -> ast.expr:
    """What a name of the module stands for."""
    if not isinstance(node, ast.Name):
        return node
    for each in tree.body:
        if isinstance(each, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == node.id for target in each.targets
        ):
            return each.value
    return node


def main() -> None:
    for text, place in messages().items():
        print(f"{text:80} {place}")


if __name__ == "__main__":
    main()
