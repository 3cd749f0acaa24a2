"""Who may import whom, how long a module may be, and what an import must not drag in.

Loading a code location must start no JVM and be quick, so pyspark is imported inside functions.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dagster_streamtables

PACKAGE = Path(dagster_streamtables.__file__).parent

# layer: (what it may import from this package, what it may import of the libraries watched)
MAY_IMPORT: dict[str, tuple[set[str], set[str]]] = {
    "errors": (set(), set()),
    "setting": ({"errors"}, set()),
    "compiler": ({"errors", "setting"}, {"sqlglot"}),
    "runtime": (
        {"errors", "compiler", "setting"},
        {"sqlglot", "pyspark", "delta", "deltalake", "pyarrow", "pandas", "psutil", "filelock"},
    ),
    "orchestration": (
        {"errors", "compiler", "runtime", "setting"},
        {"dagster", "pydantic", "croniter"},
    ),
    "components": (
        {"errors", "compiler", "orchestration", "runtime", "setting"},
        {"dagster", "pydantic"},
    ),
    "metrics": ({"errors", "runtime"}, {"prometheus_client"}),
    "cli": ({"errors", "compiler", "runtime", "orchestration", "metrics"}, {"typer", "rich"}),
    "__init__": (
        {"errors", "compiler", "runtime", "orchestration", "metrics", "components"},
        set(),
    ),
}
WATCHED = set().union(*(outside for _, outside in MAY_IMPORT.values()))

modules = pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)


def imports(path: Path) -> Iterator[str]:
    """What the import statements of a module name, those inside functions too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@modules
def test_imports_point_one_way(path: Path) -> None:
    layer = layer_of(path)
    inside, outside = MAY_IMPORT[layer]

    for name in imports(path):
        root, _, rest = name.partition(".")
        if root == PACKAGE.name:
            assert not rest or rest.split(".")[0] in inside | {layer}, f"{layer} imports {name}"
        elif root in WATCHED:
            assert root in outside, f"{layer} imports {name}"


@modules
def test_modules_are_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 300


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("dagster_streamtables", {"pyspark"}),
        ("dagster_streamtables.orchestration", {"pyspark", "dagster"}),
        ("dagster_streamtables.orchestration.assets", {"pyspark"}),
        ("dagster_streamtables.components", {"pyspark"}),
        ("dagster_streamtables.compiler", {"pyspark", "dagster"}),
        ("dagster_streamtables.runtime", {"pyspark", "dagster"}),
        ("dagster_streamtables.cli", {"pyspark", "dagster", "prometheus_client"}),
        ("dagster_streamtables.metrics", {"pyspark", "dagster"}),
    ],
)
def test_importing_loads_neither_spark_nor_a_layer_above(module: str, absent: set[str]) -> None:
    program = f"import sys, {module}; print(*{absent!r} & sys.modules.keys())"

    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert (said.stdout.split(), said.stderr) == ([], "")
