"""Whatever a text says, it is shown, logged and stored as that text, in every place that has one.

Names, rows and the words of other programs reach a terminal, a log, markdown in the UI, metrics,
JSON and paths. What reaches SQL is in `runtime/test_hostile_text.py`.
"""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families

import dagster_streamtables
from dagster_streamtables.cli import console
from dagster_streamtables.cli.grid import TableColumn, TableLayout, pairs
from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.log import logger
from dagster_streamtables.orchestration.alerts.alerts import Alert, AlertKind, log_alert
from dagster_streamtables.orchestration.catalog import metadata
from dagster_streamtables.orchestration.catalog.metadata import code_block, words
from dagster_streamtables.orchestration.instance.dagster_runs import PROCESS_TAG, end_dead_runs
from dagster_streamtables.runtime.delta.table_locations import TableNames
from dagster_streamtables.runtime.observe.controls import Controls
from dagster_streamtables.runtime.observe.lease import machine
from hostile import TEXTS

hostile = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def spelled(text: str) -> str:
    """The characters that are left of a text on a screen; blanks and line breaks may be others."""
    text = CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text.replace("\r\n", "\n"))
    return re.sub(r"\s", "", text)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """A terminal with colours, so that markup would become escapes."""
    written = io.StringIO()
    monkeypatch.setattr(console.out, "_file", written)
    monkeypatch.setattr(console.out, "_force_terminal", True)
    monkeypatch.setattr(console.out, "_color_system", None)
    yield written


@hostile
def test_the_terminal_shows_a_text_as_it_is(screen: io.StringIO, text: str) -> None:
    console.out.print(f"begin{text}end", soft_wrap=True)

    assert not CONTROLS.search(screen.getvalue())
    assert spelled(screen.getvalue()) == spelled(f"begin{text}end")


@hostile
def test_cells_of_a_table_are_texts(screen: io.StringIO, text: str) -> None:
    layout = TableLayout(TableColumn(f"h{text}h"), TableColumn("other", text=True))
    console.out.width = 200
    console.out.print(layout.grid([(f"c{text}c", console.color_text(f"d{text}d", "red"))]))
    console.out.print(pairs(("name", f"e{text}e")))

    # A colour begins and ends outside the text.
    plain = re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue())
    assert not CONTROLS.search(plain)
    if not re.search(r"[\n\t]", text):
        for mark in "hcde":
            assert spelled(f"{mark}{text}{mark}") in spelled(plain)


@hostile
def test_json_is_json_and_nothing_to_a_terminal(screen: io.StringIO, text: str) -> None:
    console.show_json({"a": text, text: [text]})

    assert json.loads(screen.getvalue()) == {"a": text, text: [text]}
    assert not CONTROLS.search(screen.getvalue())


@hostile
@pytest.mark.parametrize("part", ["what", "where", "why", "fix"])
def test_an_error_quotes_a_text(part: str, text: str) -> None:
    parts = {"what": "it failed", part: f"at {text} of it"}
    error = StreamTablesError(**parts)

    assert not CONTROLS.search(str(error))
    assert "\n" not in error.what
    assert not CONTROLS.search(error.args[0])
    ours = ("    ", "why: ", "fix: ", error.what)
    assert all(line.startswith(ours) for line in str(error).splitlines() if line)


@hostile
def test_a_text_begins_no_line_of_the_log(text: str, caplog: pytest.LogCaptureFixture) -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    logger.addHandler(handler)
    try:
        logger.warning("a name: %s", text)
        log_alert(Alert("t", AlertKind.CHECK_FAILED, text, datetime.now(UTC)))
    finally:
        logger.removeHandler(handler)

    begins = [line for line in written.getvalue().splitlines() if line and line[0] != " "]
    assert [line.partition(" ")[0] for line in begins] == ["WARNING"] * 2
    assert not CONTROLS.search(written.getvalue())


def test_the_tag_of_a_dead_run_begins_no_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        forged = f"{machine()}\n1@ERROR\x1b[31m"
        run = create_run_for_test(instance, status=dg.DagsterRunStatus.STARTED)
        executes = f" executes {run.run_id}"
        instance.add_run_tags(run.run_id, {PROCESS_TAG: forged + executes})
        end_dead_runs(instance)

    [record] = caplog.records
    assert record.getMessage() == (
        f"run {run.run_id}: The process of the run is gone: {machine()}\n"
        f"    1@ERROR\\u001b[31m{executes}."
    )


def test_every_module_logs_by_the_logger_that_escapes() -> None:
    """A filter of a logger does not apply to the loggers below it."""
    files = Path(dagster_streamtables.__file__).parent.rglob("*.py")
    own = [path.name for path in files if "logging.getLogger" in path.read_text()]

    assert own == ["log.py"]


@hostile
def test_a_block_of_code_ends_where_it_should(text: str) -> None:
    begin, *inside, end = code_block(f"begin\n{text}\nend", "sql").split("\n")

    assert begin == f"{end}sql"
    assert set(end) == {"`"}
    assert (inside[0], inside[-1]) == ("begin", "end")
    assert not any(line.strip().startswith(end) for line in inside)


@hostile
def test_words_in_markdown_are_words(text: str) -> None:
    shown = words(text)

    assert "\n" not in shown
    unquoted = re.sub(r"\\[!-/:-@\[-`{-~]", "", shown)
    assert not re.search(r"[`*_\[\]<>|~#&\\]", unquoted)


@hostile
def test_a_failed_step_shows_a_text_as_code(text: str) -> None:
    failure = metadata.failure(StreamTablesError("x", where=text or "y"), allow_retries=False)

    shown = failure.metadata["streamtables/where"].value
    assert shown == code_block(text or "y")


@hostile
def test_a_label_of_a_metric_is_one_value(text: str) -> None:
    class One:
        def collect(self) -> Iterator[GaugeMetricFamily]:
            family = GaugeMetricFamily("streamtables_rows", "Rows.", labels=["table"])
            family.add_metric([text], 1)
            yield family

    registry = CollectorRegistry()
    registry.register(One())  # type: ignore[arg-type]
    said = generate_latest(registry).decode()

    [family] = text_string_to_metric_families(said)
    assert [each.labels for each in family.samples] == [{"table": text}]


@hostile
def test_the_name_of_a_table_leads_below_the_root(tmp_path: Path, text: str) -> None:
    root = tmp_path / "lake"
    for name in (text, f"a.{text}", f"{text}.b"):
        try:
            place = Path(TableNames(str(root)).location(name))
        except StreamTablesError as error:
            assert "is not a valid table name" in error.what
            continue
        assert place.resolve().is_relative_to(root)
        assert place == root.joinpath(*name.split(".")) or place.parent == root / "public"


@hostile
def test_what_is_known_of_a_table_is_kept_in_one_folder(tmp_path: Path, text: str) -> None:
    controls = Controls(str(tmp_path / "lake"))
    controls.suspend(text, "why")

    assert controls.names() == [text]
    folder = tmp_path / "lake" / "_streamtables" / "controls"
    assert [each.parent.parent.parent for each in tmp_path.rglob("*.json")] == [folder]
    assert controls.read(text).suspension == "why"
    assert controls.resume(text)
    assert controls.forget(text)
    assert not controls.forget(text)
