"""Where a rule stands that a test of the tests breaks: it is found by its text, in whatever module.

So moving a module, or renaming it, leaves the lists of mutants and of bugs as they are.
"""

from __future__ import annotations

import ast
from pathlib import Path


def module_of(package: Path, rule: str, within: str = "") -> Path:
    """The module of the package that has a text, in the class or function `within` if one is named.

    Raises:
        ValueError: The text is nowhere, or in several places.
    """
    places = [
        path
        for path in sorted(package.rglob("*.py"))
        if rule in (source := path.read_text())
        for _ in range(_scope(source, within).count(rule))
    ]
    if len(places) != 1:
        where = f"in {within} " if within else ""
        raise ValueError(f'"{rule}" is {where}{len(places)} times and not once')
    return places[0]


def break_rule(package: Path, rule: str, instead: str, within: str = "") -> Path:
    """Put another rule in the place of one. Returns the module that it stands in."""
    module = module_of(package, rule, within)
    module.write_text(broken(module.read_text(), rule, instead, within))
    return module


def broken(source: str, rule: str, instead: str, within: str = "") -> str:
    """The text of a module with another rule in place of one."""
    scope = _scope(source, within)
    return source.replace(scope, scope.replace(rule, instead))


def _scope(source: str, name: str) -> str:
    """The lines of a top-level class or function, or the whole text if no name is given."""
    if not name:
        return source
    found = [
        ast.get_source_segment(source, node) or ""
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name
    ]
    return found[0] if found else ""
