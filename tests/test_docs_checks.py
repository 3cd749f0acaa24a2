"""The code of docs/checks.md does what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parent.parent / "docs" / "checks.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)


def test_the_definitions_have_the_checks_and_the_schedules_of_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "paid.sql").write_text("SELECT id FROM orders")
    found: dict[str, object] = {}
    exec(BLOCKS[0], found)
    repository = found["defs"].get_repository_def()  # type: ignore[attr-defined]
    first = PAGE[: PAGE.index("[Change assets]")]
    listed = re.findall(r"^\| `(\w+)` \| .* \| .* \| .* \| .* \|$", first, flags=re.M)
    made = sorted(key.name for key in repository.asset_graph.asset_check_keys)
    assert sorted(listed) == made, "each check has a row in the table of docs/checks.md"
    assert {schedule.execution_timezone for schedule in repository.schedule_defs} == {
        "Europe/Berlin"
    }
    assert {sensor.name for sensor in repository.sensor_defs} == {
        "streamtables_refresh",
        "streamtables_alerts",
    }


def test_every_kind_of_alert_is_explained() -> None:
    from dagster_streamtables import AlertKind

    explained = PAGE[PAGE.index("| kind | when |") :]
    for kind in AlertKind:
        assert f"`{kind}`" in explained


def test_the_example_of_a_function_is_python() -> None:
    [block] = [each for each in BLOCKS if "to_chat" in each]
    found: dict[str, object] = {}
    exec(block, found)
    assert callable(found["to_chat"])
