"""Who may import whom, how long a module may be, and what an import must not drag in.

Loading a code location must start no JVM and be quick, so pyspark is imported inside functions.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import dagster
import pytest

import dagster_streamtables
from own_process import python

PACKAGE = Path(dagster_streamtables.__file__).parent

# From the ground up: a room may import those that are named before it, and no others. A room is a
# folder, or a module that lies beside the folders.
ROOMS = (
    "errors",
    "setting",
    "log",
    "amounts",
    "dagster_private",
    "compiler/text",
    "compiler/scope",
    "compiler/operators",
    "compiler/dialect/kinds",
    "compiler/dialect/rules",
    "compiler/dialect/postgres/json",
    "compiler/dialect/postgres",
    "compiler/dialect",
    "compiler/maintain",
    "compiler/analyze",
    "compiler/rewrite",
    "compiler/lower",
    "compiler/plan",
    "compiler/views",
    "compiler",
    "runtime/errors",
    "runtime/catalogs",
    "runtime/delta",
    "runtime/model",
    "runtime/spark",
    "runtime/compute",
    "runtime/storage",
    "runtime/refresh",
    "runtime/observe",
    "runtime/checks",
    "runtime/doctor",
    "runtime",
    "reports",
    "changes/output",
    "changes/relation",
    "changes/clock",
    "changes",
    "replication/model",
    "replication/lake",
    "replication/postgres",
    "replication/target",
    "replication/apply",
    "replication/lifecycle",
    "replication",
    "metrics",
    "serve",
    "declare",
    "declarations",
    "scheduling",
    "orchestration/catalog",
    "orchestration/instance",
    "orchestration/checks",
    "orchestration/assets",
    "orchestration/replication",
    "orchestration/alerts",
    "orchestration/automation",
    "orchestration/changes",
    "orchestration",
    "checks",
    "catalog",
    "worker",
    "components",
    "cli",
)
SPARK = {"pyspark", "delta", "deltalake", "pyarrow", "pandas", "psutil", "filelock"}
# What each layer may import of the libraries that are watched.
LIBRARIES: dict[str, set[str]] = {
    "errors": set(),
    "setting": set(),
    "log": set(),
    "amounts": set(),
    "dagster_private": {"dagster"},
    "compiler": {"sqlglot"},
    "runtime": {"sqlglot"} | SPARK,
    "reports": set(),
    "changes": {"sqlglot", "lazy_loader"} | SPARK,
    "replication": SPARK | {"psycopg", "lazy_loader"},
    "metrics": {"prometheus_client"},
    "serve": {"starlette", "uvicorn", "pyarrow"},
    "declare": {"croniter"},
    "declarations": set(),
    "scheduling": set(),
    "orchestration": {"dagster", "pydantic", "croniter"},
    "checks": set(),
    "catalog": set(),
    "worker": {"dagster"},
    "components": {"dagster", "pydantic"},
    "cli": {"typer", "rich"},
    "__init__": {"lazy_loader"},
}
# Names of the Delta protocol, of a log's files and of what is in them.
LOG_WORDS = ("_delta_log", "_last_checkpoint", ":020d", '"commitInfo"', '"operationMetrics"')
# What begins a commit of Spark.
COMMITS = (
    ".save(",
    "MERGE INTO",
    "ALTER TABLE",
    "DELETE FROM",
    "OPTIMIZE ",
    "VACUUM ",
    "INSERT INTO",
)
WATCHED = set().union(*LIBRARIES.values())
ALL = sorted(PACKAGE.rglob("*.py"))


def modules(check: Callable[[Path], None]) -> Callable[[], None]:
    """A check of one module → a test of all, which names each that breaks it."""

    def of_all() -> None:
        broken = []
        for path in ALL:
            try:
                check(path)
            except AssertionError as error:
                broken.append(f"{path.relative_to(PACKAGE)}: {error}")
        assert not broken, "\n".join(broken)

    return of_all


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imports(path: Path) -> Iterator[str]:
    """What the import statements of a module name, those inside functions too."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room_of(name: str) -> str:
    """The room of a module or a package, by its name below the package."""
    parts = name.split(".")
    for room in ("/".join(parts[:2]), parts[0]):
        if room in ROOMS:
            return room
    raise AssertionError(f"{name} is in no room: give its folder a place in ROOMS")


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


@modules
def test_imports_point_one_way(path: Path) -> None:
    if path == PACKAGE / "__init__.py":
        return  # it has the public names of all rooms
    room = room_of(name_of(path))

    for name in imports(path):
        root, _, rest = name.partition(".")
        if root == PACKAGE.name and rest:
            theirs = room_of(rest)
            assert ROOMS.index(theirs) <= ROOMS.index(room), (
                f"{room} imports {rest}, which stands above it: move what both need to a room below"
            )


@modules
def test_one_module_prints_the_tables_of_the_command_line(path: Path) -> None:
    """It cuts nothing, and pads nothing in a pipe; `watch` redraws a screen of a fixed height."""
    if name_of(path) not in ("cli.grid", "cli.watch"):
        for name in imports(path):
            assert not name.startswith(("rich.table", "rich.columns", "rich.box", "rich.pretty")), (
                f"{name} cuts cells to fit the terminal: print a Layout of cli/grid.py"
            )


def test_no_modules_import_each_other() -> None:
    """Not for types either: what two modules need is a module, or a protocol, of its own."""
    names = {name_of(path): path for path in ALL}

    def imported(path: Path) -> Iterator[str]:
        for name in imports(path):
            root, _, rest = name.partition(".")
            if root == PACKAGE.name:
                yield rest if rest in names else rest.rpartition(".")[0]

    graph = {name: [*imported(path)] for name, path in names.items() if name != "__init__"}
    TopologicalSorter(graph).prepare()


@modules
def test_only_storage_knows_which_engine_writes(path: Path) -> None:
    for name in imports(path):
        if name.endswith((".delta_rs_writer", ".spark_writer")) or "_writer." in name:
            assert room_of(name_of(path)) == "runtime/storage", (
                f"{name} is one of two engines: call runtime/storage/writer.py, which chooses"
            )


@modules
def test_spark_is_asked_for_its_log_store_before_it_commits(path: Path) -> None:
    """On S3 it could erase a commit of another writer."""
    text = path.read_text()
    committing = [word for word in COMMITS if word in text and "spark_name" in text]
    asked = "def require_safe_commits" in text or any(
        name.endswith((".require_safe_commits", ".commits_safely", "commits.Commit"))
        for name in imports(path)
    )
    assert not committing or asked, f"{committing}: call require_safe_commits before"


@modules
def test_only_delta_knows_what_a_log_looks_like(path: Path) -> None:
    text = path.read_text()
    known = [word for word in LOG_WORDS if word in text]
    assert not known or room_of(name_of(path)) == "runtime/delta", (
        f"{known} are for runtime/delta alone: for the path of a log or of a file in it call "
        "log_paths or log_folder, for what a commit says actions"
    )


@modules
def test_the_compiler_is_its_package(path: Path) -> None:
    layer = name_of(path).split(".")[0]
    if layer == "compiler":
        return
    folders = {each.stem for each in (PACKAGE / "compiler").iterdir()}

    for name in imports(path):
        inside = name.partition(f"{PACKAGE.name}.compiler.")[2].split(".")[0]
        assert inside not in folders, (
            f"{layer} imports {name}: let the compiler do what needs it, or add the name to those "
            f"that {PACKAGE.name}/compiler/__init__.py exports, and import it from there"
        )


@modules
def test_libraries_stay_in_their_layers(path: Path) -> None:
    layer = name_of(path).split(".")[0]

    for name in imports(path):
        root = name.partition(".")[0]
        if root in WATCHED:
            assert root in LIBRARIES[layer], f"{layer} imports {name}; see LIBRARIES"


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_is_seen_at_a_glance(room: str) -> None:
    folder = PACKAGE / room

    assert folder.is_dir() or folder.with_suffix(".py").is_file()
    assert len(list(folder.glob("*.py"))) <= 30
    assert folder.with_suffix(".py").is_file() or ast.get_docstring(
        ast.parse((folder / "__init__.py").read_text())
    ), f"{room}/__init__.py does not say what may live there"


@modules
def test_modules_are_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 500


def test_the_page_of_the_architecture_has_every_room() -> None:
    page = (PACKAGE.parent / "docs/architecture.md").read_text()
    rooms = page.partition("## Rooms")[2].partition("## ")[0]
    rows = [line.split("`")[1] for line in rooms.splitlines() if line.startswith("| `")]

    assert rows == [f"{room}/" if (PACKAGE / room).is_dir() else f"{room}.py" for room in ROOMS]


@pytest.mark.parametrize(
    ("first_to_last", "absent"),
    [
        (
            (
                "dagster_streamtables.compiler", "dagster_streamtables.runtime",
                "dagster_streamtables.reports", "dagster_streamtables.changes.output.row_encoder",
                "dagster_streamtables.orchestration", "dagster_streamtables.metrics",
                "dagster_streamtables.replication", "dagster_streamtables.declarations",
                "dagster_streamtables.declare.nodes",
                "dagster_streamtables.worker.lake_workload",
            ),
            {"pyspark", "dagster"},
        ),
        (
            ("dagster_streamtables.worker.loop", "dagster_streamtables.cli"),
            {"pyspark", "dagster", "prometheus_client"},
        ),
        (
            (
                "dagster_streamtables", "dagster_streamtables.orchestration.assets.assets",
                "dagster_streamtables.checks", "dagster_streamtables.catalog",
                "dagster_streamtables.components",
            ),
            {"pyspark"},
        ),
        (
            (
                "dagster_streamtables.runtime.lake",
                "dagster_streamtables.orchestration.assets.assets",
            ),
            {"pyspark", "pyarrow", "numpy"},
        ),
    ],
    ids=["without Dagster", "commands", "with Dagster", "without rows"],
)  # fmt: skip
def test_importing_loads_neither_spark_nor_a_layer_above(
    first_to_last: tuple[str, ...], absent: set[str]
) -> None:
    """In one process, since starting Python takes longer; the first that loads one is blamed."""
    looks = (f"import {each}; print(*{absent!r} & sys.modules.keys())" for each in first_to_last)

    said = python("-c", "\n".join(["import sys", *looks]))

    found = dict(zip(first_to_last, said.stdout.splitlines(), strict=False))
    assert (found, said.stderr) == (dict.fromkeys(first_to_last, ""), "")


# What Dagster exports under no public name. An import of it has a comment above that says why.
PRIVATE_OF_DAGSTER = {
    "components/component.py": {"TranslationFn", "TranslationFnResolver"},
    "components/component_tree.py": {
        "ComponentDecl", "ComponentLoaderDecl", "ComponentLoc", "ComponentPath", "PythonFileDecl",
        "YamlDecl",
    },
    "dagster_private.py": {
        "AssetCheckExecutionRecord", "AssetCheckExecutionRecordStatus", "AssetRecord", "CheckError",
        "CronFreshnessPolicy", "DagsterAssetCheckFailedError", "DagsterLibraryRegistry",
        "DbIOManager", "DbTypeHandler", "DefinitionsLoadContext", "DefinitionsLoadType",
        "FreshnessState", "FreshnessStateChange", "TableSlice", "TimeWindowFreshnessPolicy",
        "replace",
    },
    "orchestration/assets/thread_executor.py": {
        "ActiveExecution", "EngineEventData", "ExecuteRunWithPlanIterable", "ExecutionPlan",
        "InstanceConcurrencyContext", "PlanExecutionContext", "PlanExecutionContextManager",
        "PlanOrchestrationContext", "RetryMode", "_handle_compute_log_setup_error",
        "_handle_compute_log_teardown_error", "_trigger_hook", "create_compute_log_file_key",
        "dagster_event_sequence_for_step", "get_retries_config",
    },
    "orchestration/code_location.py": {
        "CodeLocationOrigin", "LazyDefinitions", "ManagedGrpcPythonEnvCodeLocationOrigin",
        "location_origins_from_yaml_paths",
    },
}  # fmt: skip
_PRIVATE = re.compile(r"from (?:dagster\._|dagster_shared|dagster\.components\.)")


@cache
def exported_by_dagster() -> set[str]:
    """What it imports under an explicit name, which is how a typed package says that it exports."""
    tree = parsed(Path(dagster.__file__))
    names = (a for node in tree.body if isinstance(node, ast.ImportFrom) for a in node.names)
    return {alias.asname for alias in names if alias.asname}


def private_imports(source: str) -> set[str]:
    """The names that a module imports from private modules of Dagster."""
    return {
        alias.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and _PRIVATE.match(f"from {node.module}")
        for alias in node.names
    }


@modules
def test_what_dagster_exports_is_imported_from_where_it_is_exported(path: Path) -> None:
    file = str(path.relative_to(PACKAGE))
    names = private_imports(path.read_text())

    public = names & exported_by_dagster()
    assert not public, f"{file}: dagster exports {', '.join(public)}: write dg.… instead"
    assert names == PRIVATE_OF_DAGSTER.get(file, set()), (
        f"{file} imports other private names of Dagster than PRIVATE_OF_DAGSTER lists. These may "
        "change with each release: use a public name if there is one in dir(dagster); if not, add "
        "it to dagster_private.py, say above the import why it is needed, and list it here"
    )


@modules
def test_each_import_of_a_private_name_has_its_reason(path: Path) -> None:
    reason = ""
    for line in path.read_text().splitlines():
        if _PRIVATE.match(line):
            assert reason, f"{path}: say in a comment above it why this is needed: {line}"
        elif line.startswith("#"):
            reason = line
        elif not line.startswith(("    ", ")")):  # an import of several lines
            reason = ""


def test_a_private_import_is_found() -> None:
    source = (
        "from dagster._core.events import A\nfrom dagster import B\nfrom dagster_shared.x import C"
    )
    assert private_imports(source) == {"A", "C"}
