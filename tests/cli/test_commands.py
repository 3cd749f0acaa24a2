"""What the command line shows and does, on tables that were refreshed."""

from __future__ import annotations

import json
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from cli.command_line import CommandLine
from cli.conftest import Shop
from dagster_streamtables.cli.console import out
from dagster_streamtables.cli.grid import Grid

NAMES = {"mart.revenue", "mart.best", "mart.busy"}

STATUS = {
    "table", "status", "why", "suspended", "unreadable", "declared", "mode", "schedule",
    "resolved_schedule", "populated", "errors", "error", "error_at", "failed", "data_timestamp",
    "refreshed_at", "stale_since", "staleness_seconds", "stale", "version", "rows", "bytes",
    "files", "sources", "intermediates", "refreshes", "fallback", "fallbacks", "work",
}  # fmt: skip
REFRESH = {
    "table", "version", "time", "frontier", "action", "reason", "mode", "rows_in", "inserted",
    "deleted", "seconds", "phases", "windows", "data_timestamp", "forecast_error", "fallback",
    "full_reason",
}  # fmt: skip


def test_status_shows_all_tables_or_one_in_full(shop: Shop) -> None:
    found = shop.by_table("status")
    assert list(found) == ["mart.best", "mart.busy", "mart.revenue"]
    revenue = found["mart.revenue"]
    assert set(revenue) == STATUS, "the keys are stable"
    assert (revenue["status"], revenue["rows"], revenue["version"]) == ("ACTIVE", 4, 1)
    assert revenue["schedule"] == "CALCULATED"
    assert revenue["resolved_schedule"] == "5m, from mart.best"
    assert (revenue["staleness_seconds"], revenue["stale"]) == (0, False)
    assert datetime.fromisoformat(revenue["data_timestamp"]).tzinfo is not None
    assert found["mart.busy"]["intermediates"][0]["rows"] == 4

    shop.sell(22)
    assert "mart.revenue" in shop.said("status")
    assert "5m, from mart.best" in shop.said("status --wide")
    one = shop.said("status mart.busy")
    assert "intermediate table" in one
    assert "sales.orders" in one
    assert shop.json("status mart.busy")[0]["staleness_seconds"] > 0
    assert "there is no stream table" in shop.refused("status mart.besd")


def test_without_declarations_tables_are_found_by_their_logs(shop: Shop) -> None:
    [found] = shop.undeclared.json("status mart.best")
    assert (found["declared"], found["stale"], found["schedule"]) == (False, None, None)
    assert (found["status"], found["mode"]) == ("ACTIVE", "DIFFERENTIAL")


def test_strict_is_no_where_a_table_is_not_well(shop: Shop) -> None:
    shop.said("status --strict")
    shop.said("suspend mart.best --why 'moving [house]'")
    assert "moving [house]" in shop.said("status --strict", code=3)
    shop.said("status mart.busy --strict")
    assert "is resumed" in shop.said("resume mart.best")
    shop.said("status --strict")
    Path(shop.root, "sales").rename(Path(shop.root, "other"))
    assert 'there is no table "sales.orders"' in shop.said("status --strict", code=3)
    assert "?" in shop.said("retention")
    assert shop.json("retention")[-1]["newest"] is None


def test_history_and_statistics_tell_what_was_done(shop: Shop) -> None:
    found = shop.json("history mart.revenue")
    assert set(found) == {"table", "failed", "refreshes"}
    newest, first = found["refreshes"]
    assert set(newest) == REFRESH
    assert (newest["action"], newest["rows_in"]) == ("DIFFERENTIAL", 1)
    assert newest["frontier"] == {"sales.orders": 1}
    assert (newest["inserted"], newest["deleted"], newest["mode"]) == (1, 1, "DIFFERENTIAL")
    assert first["action"] == "REINITIALIZE"
    assert len(shop.json("history mart.revenue -n 1")["refreshes"]) == 1
    text = shop.said("history mart.revenue --wide")
    assert "there is no table yet" in text
    assert "sales.orders@1" in text

    [stats] = shop.json("stats mart.revenue")
    assert stats["actions"] == {"DIFFERENTIAL": 1, "REINITIALIZE": 1}
    assert stats["seconds_median"] <= stats["seconds_p95"] == stats["seconds_most"]
    assert shop.said("stats").count("mart.") == 3


def test_a_table_that_never_was_has_a_history_of_its_errors(shop: Shop) -> None:
    shop.declare("shares", "SELECT id, 1 DIV (id - id) AS n FROM sales.orders")
    shop.run("refresh mart.shares")
    assert "DIVIDE_BY_ZERO" in shop.said("history mart.shares")
    [failed] = shop.json("history mart.shares")["failed"]
    assert (failed["lasting"], datetime.fromisoformat(failed["at"]).tzinfo is None) == (True, False)
    [known] = shop.undeclared.json("status mart.shares")
    assert (known["status"], known["errors"], known["failed"]) == ("NEW", 1, 1)
    found = shop.undeclared.json("events mart.shares")
    assert [each["kind"] for each in found] == ["failed"]
    assert 'failed_refreshes_total{table="mart.shares"} 1' in shop.said("metrics")


def test_events_are_filtered(shop: Shop) -> None:
    assert [each["kind"] for each in shop.json("events")].count("reinitialized") == 3
    assert shop.json("events --alerts") == []
    shop.said("suspend mart.best")
    [alert] = shop.json("events --alerts")
    assert (alert["table"], alert["kind"]) == ("mart.best", "suspended")
    assert {each["table"] for each in shop.json("events mart.busy")} == {"mart.busy"}
    assert len(shop.json("events -n 2")) == 2
    assert shop.json("events --since 2999-01-01") == []
    assert shop.json("events --since", alert["time"][:19])[0]["kind"] == "suspended"
    assert "suspended" in shop.said("events")


def test_an_alert_is_shown_even_if_newer_refreshes_are_none(tmp_path: Path) -> None:
    shutil.copytree(Path(__file__).parents[1] / "runtime/older_lake", tmp_path, dirs_exist_ok=True)
    first = tmp_path / "public/sound/_delta_log/00000000000000000000.json"
    fallback = r"\"fallback\": \"%s\""
    first.write_text(first.read_text().replace(fallback % "", fallback % "Spark could not"))
    command = CommandLine(tmp_path)
    [newest] = command.json("events sound -n 1")
    assert newest["kind"] != "fell_back"
    [alert] = command.json("events sound --alerts -n 1")
    assert alert["kind"] == "fell_back"


def test_retention_is_shown(shop: Shop) -> None:
    shop.sell(22)
    found = shop.by_table("retention")
    assert found["mart.revenue"]["versions_behind"] == 1
    assert datetime.fromisoformat(found["mart.revenue"]["behind_since"])
    assert found["mart.best"]["behind_since"] is None


@pytest.mark.smoke("`streamtables refresh`")
def test_refresh_goes_through_the_graph_and_says_what_failed(shop: Shop) -> None:
    shop.sell(22, 23)
    [best] = shop.json("refresh mart.best")
    assert (best["action"], best["error"], best["held_by"]) == ("NO_DATA", None, [])
    found = shop.by_table("refresh mart.best --upstream")
    assert {*found} == {"mart.best", "mart.revenue"}
    assert (found["mart.revenue"]["rows_in"], found["mart.revenue"]["row_count"]) == (2, 4)
    assert "mart.busy" in shop.said("refresh")
    assert shop.json("refresh mart.busy --full")[0]["reason"].startswith("asked for")

    shop.declare("revenue", "SELECT amount / 0 AS n, id FROM sales.orders")
    shop.declare("worse", "-- schedul: 5m\nSELECT 1 AS n")
    failed = shop.by_table("refresh", code=1)
    assert "DIVIDE_BY_ZERO" in failed["mart.revenue"]["error"]["why"]
    assert failed["mart.best"]["held_by"] == ["mart.revenue"]
    assert 'there is no setting "schedul"' in failed["mart.worse"]["error"]["what"]
    assert failed["mart.busy"]["action"] == "NO_DATA"
    done = shop.run("refresh")
    assert (done.exit_code, "skipped" in done.stdout) == (1, True)
    assert "DIVIDE_BY_ZERO" in done.stderr
    history = shop.json("history mart.revenue")
    assert ["DIVIDE_BY_ZERO" in each["error"] for each in history["failed"]] == [True, True]
    assert shop.said("history mart.revenue").count("failed") == 2
    assert "Traceback" not in done.output


def test_a_log_has_the_line_of_each_table_as_soon_as_it_is_done(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed: list[int] = []

    def show(*objects: Any, **options: Any) -> None:
        printed.extend(len(each.rows) for each in objects if isinstance(each, Grid))
        plain(*objects, **options)

    plain = out.print
    monkeypatch.setattr(out, "print", show)
    header, *lines = shop.said("refresh").splitlines()
    assert header.startswith("table\t")
    assert sorted(line.split("\t")[0] for line in lines) == sorted(NAMES)
    assert printed == [0, 1, 1, 1]


def test_without_names_all_tables_are_explained_and_vacuumed(shop: Shop) -> None:
    assert {each["table"] for each in shop.json("explain")} == NAMES
    text = shop.said("explain")
    assert all(f"{name}, mode" in text for name in NAMES)
    assert {each["table"] for each in shop.json("vacuum --dry-run --keep-hours 0")} == NAMES
    assert shop.said("vacuum --dry-run").count("would be deleted") == 3
    assert shop.json("vacuum mart.best --dry-run")["table"] == "mart.best"
    shop.declare("random", "SELECT id, rand() AS r FROM sales.orders")
    shop.declare("lost", "SELECT id FROM sales.nowhere")
    done = shop.run("explain")
    assert done.exit_code == 1
    assert "rand() cannot be maintained" in done.stdout
    assert 'there is no table "sales.nowhere"' in done.stderr


def test_the_last_refresh_in_full_is_explained_by_its_code(shop: Shop) -> None:
    found = shop.json("explain --last-full mart.best")
    assert found["refresh"]["full_reason"] == "first"
    shop.said("refresh mart.best --full")
    assert shop.json("explain --last-full mart.best")["refresh"]["full_reason"] == "requested"
    shown = shop.said("explain --last-full")
    assert "requested" in shown
    shop.declare("new", "SELECT id FROM sales.orders")
    assert shop.run("explain --last-full mart.new").exit_code == 1
    shop.declare("broken", "SELECT FROM")
    broken = shop.run("explain --last-full mart.broken")
    assert (broken.exit_code, "there is no table" in broken.stderr) == (1, False)


def test_check_is_no_where_a_table_is_not_its_query(shop: Shop) -> None:
    assert [each["equal"] for each in shop.json("check")] == [True, True, True]
    table = DeltaTable(shop.lake.location("mart.revenue"))
    table.update({"total": "total + 1"}, predicate="customer = 1")
    found = shop.by_table("check", code=3)
    assert (found["mart.revenue"]["missing"], found["mart.revenue"]["unexpected"]) == (1, 1)
    assert "Rows of mart.revenue that differ" in shop.said("check mart.revenue", code=3)


def test_one_table_that_cannot_be_read_hides_no_other(shop: Shop) -> None:
    shutil.rmtree(Path(shop.root, "mart/best"))
    for log in Path(shop.root, "mart/busy/_delta_log").iterdir():
        log.write_text("{")

    checked = shop.run("check --json")
    assert (checked.exit_code, "never been refreshed" in checked.stderr) == (1, True)
    assert [each["table"] for each in json.loads(checked.stdout)] == ["mart.revenue"]
    for command in ("stats", "retention"):
        done = shop.run(command)
        assert (done.exit_code, "mart/busy" in done.stderr) == (1, True), done.output
        assert "mart.revenue" in done.stdout
    assert "mart.busy" in shop.undeclared.run("status").stdout


def test_a_table_is_dropped_unless_it_is_read(shop: Shop) -> None:
    assert "is read by mart.best" in shop.refused("drop mart.revenue --yes")
    assert shop.run("drop mart.best").exit_code == 1, "nobody answered the question"
    assert Path(shop.root, "mart/best").exists()
    assert "Dropped mart.best" in shop.said("drop mart.best -y")
    assert not Path(shop.root, "mart/best").exists()
    assert shop.json("drop mart.revenue -y --force")["rows"] == 4
    [left] = shop.undeclared.json("status")
    assert left["table"] == "mart.busy"
    assert "is not a stream table" in shop.refused("drop sales.orders -y")
