"""`docs/operation.md` shows each command, `docs/metrics.md` each metric; their Python runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
import typer.main
from pyspark.sql import SparkSession

from cli.conftest import Shop
from dagster_streamtables import Lake
from dagster_streamtables.cli import app
from dagster_streamtables.metrics.collector import FAMILIES, PREFIX

HERE = Path(__file__).parent.parent.parent
PAGE = (HERE / "docs/operation.md").read_text()
METRICS = (HERE / "docs/metrics.md").read_text()
COMMAND = re.compile(r"^(?:\$ )?streamtables (.*?)(?:\s+#.*)?$", flags=re.M)
GROUP = typer.main.get_command(app)


def commands(group: click.Command, *path: str) -> dict[tuple[str, ...], click.Command]:
    found = getattr(group, "commands", None)
    if found is None:
        return {path: group}
    every = (commands(each, *path, name) for name, each in found.items())
    return {name: each for some in every for name, each in some.items()}


@pytest.mark.parametrize("page", ["docs/operation.md", "README.md"])
def test_every_command_that_is_shown_can_be_typed(page: str) -> None:
    shown = COMMAND.findall((HERE / page).read_text())
    assert shown
    for line in shown:
        words, command = shlex.split(line), GROUP
        while inner := getattr(command, "commands", None):
            if getattr(command, "invoke_without_command", False) and words[:1] != ["status"]:
                break  # a command of its own, with others below it
            assert words[0] in inner, line
            command = inner[words.pop(0)]
        options = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
        used = {word.partition("=")[0] for word in words if word.startswith("-")}
        assert used <= options, line


def test_every_command_is_shown() -> None:
    shown = COMMAND.findall(PAGE)
    for path in commands(GROUP):
        assert any(line.split()[: len(path)] == list(path) for line in shown), path


def test_every_metric_is_told() -> None:
    told = set(re.findall(rf"^\| `({PREFIX}\w+)` ", METRICS, flags=re.M))
    assert told == {PREFIX + n + "_total" * about.counter for n, about in FAMILIES.items()}


def test_its_python_runs(
    shop: Shop, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(shop.folder)
    shop.sell(22, 23)
    names: dict[str, Any] = {"spark": spark}
    for block in re.findall(r"```python\n(.*?)```", PAGE + METRICS, flags=re.S):
        exec(block, names)
    said = capsys.readouterr().out
    assert "mart.revenue ACTIVE" in said
    assert "DIFFERENTIAL" in said
    assert isinstance(names["lake"], Lake)
    assert names["lake"].version("mart.busy") is None
