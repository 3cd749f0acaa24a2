"""Changed definitions: the new ones apply without a restart, and broken ones change nothing."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.worker.lake_workload import of_folder
from dagster_streamtables.worker.reload import Reload, folder_of, reimport
from dagster_streamtables.worker.workload import Workload


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    (tmp_path / "tables").mkdir()
    return tmp_path / "tables"


def test_a_changed_file_is_loaded_once_and_a_new_one_too(tables: Path) -> None:
    (tables / "paid.sql").write_text("SELECT id FROM orders")
    lake = Lake(tables.parent)

    def load() -> Workload:
        return of_folder(str(tables), lake)

    reload = Reload(load(), load, [tables], every=0.01)
    assert not reload.look()
    (tables / "paid.sql").write_text("SELECT id, amount FROM orders")
    (tables / "more.sql").write_text("SELECT id FROM paid")
    assert reload.look()
    new = reload.take()
    assert new is not None
    assert list(new.nodes.tables) == ["paid", "more"]
    assert reload.take() is None
    assert not reload.look()


def test_what_does_not_load_changes_nothing_and_is_said(
    tables: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = of_folder(str(tables), Lake(tables.parent))

    def broken() -> Workload:
        raise ImportError("no module named pandsa")

    reload = Reload(first, broken, [tables], every=0.01)
    (tables / "paid.sql").write_text("SELECT id FROM orders")
    with caplog.at_level(logging.ERROR):
        assert not reload.look()
    assert "pandsa" in reload.error
    assert "the last ones go on" in "".join(caplog.messages)
    assert reload.take() is None
    elsewhere = Lake(tables.parent / "x")
    moved = Reload(first, lambda: of_folder(str(tables), elsewhere), [tables], 0.01)
    (tables / "paid.sql").write_text("SELECT id, 1 AS one FROM orders")
    assert not moved.look()
    assert "the root of the tables changed" in moved.error


def test_modules_of_a_project_are_imported_anew_or_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))
    package = tmp_path / "worker_reloads"
    package.mkdir()
    (package / "__init__.py").write_text("from worker_reloads.inner import VALUE")
    (package / "inner.py").write_text("VALUE = 1")

    def load() -> int:
        import worker_reloads  # pyright: ignore[reportMissingImports]

        return worker_reloads.VALUE  # pyright: ignore

    assert load() == 1
    folder = folder_of("worker_reloads")
    assert folder == package
    (package / "inner.py").write_text("VALUE = 2")
    assert reimport(folder, load) == 2
    (package / "inner.py").write_text("VALUE = ")
    with pytest.raises(SyntaxError):
        reimport(folder, load)
    assert load() == 2
