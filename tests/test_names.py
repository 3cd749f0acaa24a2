"""What names say, and how fine the grain is: rules that no type checker knows.

A verb names work, a noun a value; a past participle (`told`, `_joined`) leaves open which. A search
for a name that stands in two modules finds the other one.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import dagster_streamtables
from test_architecture import ALL, PACKAGE, imports, name_of, parsed

MODULES = [path for path in ALL if not path.stem.startswith("__")]

FLOOR = 60

# Each is an adjective by now, or no participle at all.
ADJECTIVES = {
    "embed", "exceed", "feed", "fixed", "indexed", "keyed", "need", "nested", "ordered", "proceed",
    "seed", "shared", "speed", "typed", "unified",
}  # fmt: skip
IRREGULAR = {
    "begun", "built", "chosen", "come", "done", "drawn", "found", "given", "gone", "held", "hidden",
    "kept", "known", "left", "lost", "made", "said", "seen", "sent", "shown", "taken", "told",
    "written",
}  # fmt: skip

# Names that others chose, or that users have in their code.
OTHERS = {
    "connection_made": "asyncio calls it",
    "ended": "of `Subscription`, which users read",
    "expected": "of `Refresh`, which users read",
}
TWICE = {
    "Parser": "where sqlglot looks for the parser of a dialect",
    "refresh": "the command, and what it runs",
}
QUESTIONS = ("is_", "are_", "has_", "have_", "can_", "was_")
PREPOSITIONS = {"by", "for", "from", "in", "of", "on", "over", "to", "with"}


def is_participle(name: str) -> bool:
    """Whether a name is a past participle, or ends in one: `told`, `_joined_by`, `rows_read`.

    Before a noun it is an adjective: `stored_columns`. After is_ it asks: `is_closed`.
    """
    words = name.strip("_").lower().split("_")
    if name.strip("_").startswith(QUESTIONS):
        return False
    last = words[0] if len(words) == 2 and words[1] in PREPOSITIONS else words[-1]
    return last in IRREGULAR or (len(last) > 3 and last.endswith("ed") and last not in ADJECTIVES)


def definitions() -> Iterator[tuple[str, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path in ALL:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield file_of(path), node


def file_of(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def importers() -> dict[str, set[Path]]:
    """The modules that import from each module, by its name below the package."""
    found: defaultdict[str, set[Path]] = defaultdict(set)
    for path in ALL:
        for name in imports(path):
            module = name.removeprefix(f"{PACKAGE.name}.")
            for each in (module, module.rpartition(".")[0]):  # import x.y, and from x.y import z
                found[each].add(path)
    return found


def test_no_name_is_a_participle() -> None:
    broken = [
        f"{file}:{node.lineno} {node.name}"
        for file, node in definitions()
        if node.name not in OTHERS and is_participle(re.sub(r"(?<=.)(?=[A-Z])", "_", node.name))
    ]
    broken += [file_of(path) for path in MODULES if is_participle(path.stem)]

    assert not broken, (
        "name work by a verb (join_rows), a value by a noun (joined_rows), a question by is_, has_ "
        "or can_: " + ", ".join(broken)
    )


def test_a_participle_is_found() -> None:
    names = ("_told", "Renamed", "joined_by", "rows_kept", "feed", "is_closed", "stored_columns")

    assert [name for name in names if is_participle(name)] == list(names[:4])


def test_each_class_has_a_name_of_its_own() -> None:
    counts = Counter(node.name for _, node in definitions() if isinstance(node, ast.ClassDef))
    twice = {name for name, count in counts.items() if count > 1} - TWICE.keys()

    assert not twice, f"rename one of each by what it is for: {', '.join(sorted(twice))}"


def test_each_module_has_a_name_of_its_own() -> None:
    counts = Counter(path.stem for path in MODULES)
    twice = {name for name, count in counts.items() if count > 1} - TWICE.keys()

    assert not twice, f"rename one of each by what is in it: {', '.join(sorted(twice))}"


def test_a_small_module_has_several_users() -> None:
    users = importers()
    small = [
        file_of(path)
        for path in MODULES
        if path.stem not in dagster_streamtables.SUBMODULES
        and len(path.read_text().splitlines()) < FLOOR
        and len(users[name_of(path)]) < 2
    ]

    assert not small, f"put what has fewer than {FLOOR} lines into the module that uses it: {small}"


def test_no_module_imports_a_private_name() -> None:
    broken = [
        f"{file_of(path)}:{node.lineno} {alias.name}"
        for path in ALL
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE.name)
        for alias in node.names
        if alias.name.startswith("_")
    ]

    assert not broken, f"make public what others need, or move it to them: {', '.join(broken)}"
