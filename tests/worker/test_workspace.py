"""A workspace: each resource of stream tables in its code locations has a worker."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dagster_streamtables.cli.worker import DeclarationSource
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.runtime.observe.lease import newest_heartbeats
from dagster_streamtables.worker.loop import Worker, WorkerGroup

_LOCATION = """
from dagster_streamtables import StreamTable, StreamTablesResource, build_definitions

defs = build_definitions(
    resource=StreamTablesResource(root={root!r}),
    tables=[StreamTable("{table}", "SELECT id FROM orders", schedule="1h")],
    name="{name}",
)
unrelated = 1
"""

Declare = Callable[[str, str], None]


@pytest.fixture(autouse=True)
def modules() -> Iterator[None]:
    """Those of a test are forgotten after it."""
    path, before = [*sys.path], {*sys.modules}
    yield
    for name in {*sys.modules} - before:
        if name.endswith("_location") and "." not in name:  # Dagster has modules of such names
            del sys.modules[name]
    sys.path[:] = path


@pytest.fixture
def declare(tmp_path: Path) -> Declare:
    """Write ``<name>_location.py``: its resource is of that name, and has one table."""
    (tmp_path / "lake").mkdir()
    (tmp_path / "other_location.py").write_text("import dagster as dg\ndefs = dg.Definitions()")

    def write(name: str, table: str) -> None:
        text = _LOCATION.format(root=str(tmp_path / "lake"), name=name, table=table)
        (tmp_path / f"{name}_location.py").write_text(text)

    return write


def place(folder: Path, *load_from: str, name: str = "", root: str = "") -> DeclarationSource:
    workspace = folder / "workspace.yaml"
    workspace.write_text("load_from:\n" + "\n".join(f"  - {each}" for each in load_from))
    return DeclarationSource("", "", str(workspace), "", root, name, False, 10)


def test_each_resource_of_a_workspace_has_a_worker(tmp_path: Path, declare: Declare) -> None:
    declare("one", "a")
    declare("two", "b")
    found = place(
        tmp_path,
        "python_file: one_location.py",
        f"python_module: {{module_name: two_location, working_directory: {tmp_path}}}",
        "python_file: other_location.py",
    ).reloads()
    assert [(each.first.name, [*each.first.nodes.tables]) for each in found] == [
        ("one", ["a"]),
        ("two", ["b"]),
    ]
    declare("one", "c")
    assert found[0].look()
    new = found[0].take()
    assert new is not None
    assert [*new.nodes.tables] == ["c"]
    assert found[1].first.name == "two"


def test_workers_of_one_process_end_together(tmp_path: Path, declare: Declare) -> None:
    declare("one", "a")
    declare("two", "b")
    files = [f"python_file: {name}_location.py" for name in ("one", "two")]
    several = WorkerGroup([Worker(each.first) for each in place(tmp_path, *files).reloads()])
    assert several.health()["healthy"]
    assert [each["name"] for each in several.health()["workers"]] == ["one", "two"]
    [one, two] = several.workers
    assert one.lease.renew()
    assert two.lease.renew()
    assert [*newest_heartbeats(one.driven.logs.root)] == ["one", "two"]
    one.stop()
    two.stop()
    assert several.run()
    ended = newest_heartbeats(one.driven.logs.root).values()
    assert [each.ended for each in ended] == [True, True]


def test_workspaces_that_no_worker_can_drive(tmp_path: Path, declare: Declare) -> None:
    declare("one", "a")
    file = "python_file: one_location.py"
    twice = place(tmp_path, file, "python_module: one_location", name="one").reloads()
    with pytest.raises(InvalidDefinition, match='2 code locations have the resource "one"'):
        WorkerGroup([Worker(each.first) for each in twice])
    for load_from, said in {
        "grpc_server: {host: localhost, port: 4266}": "cannot load the code location",
        "python_file: {relative_path: one_location.py, executable_path: /other}": "/other",
        "python_file: {relative_path: one_location.py, attribute: unrelated}": ":unrelated",
        "python_file: gone.py": "cannot be imported",
        "python_file: other_location.py": "no code location of the workspace",
        "nonsense: 1": "cannot be read",
    }.items():
        with pytest.raises(InvalidDefinition) as raised:
            place(tmp_path, load_from).reloads()
        assert said in str(raised.value)
    with pytest.raises(InvalidDefinition, match="have another root than the one given"):
        place(tmp_path, file, root=str(tmp_path)).reloads()
    with pytest.raises(InvalidDefinition, match="there is no workspace"):
        DeclarationSource("", "", str(tmp_path / "none.yaml"), "", "", "", False, 10).reloads()
    with pytest.raises(InvalidDefinition, match="declarations from one place"):
        DeclarationSource("a", "", "b", "", "", "", False, 10).reloads()
