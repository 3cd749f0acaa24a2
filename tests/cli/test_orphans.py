"""Tables are declared, stored, or both: what the command line shows of each, and does with it."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

from cli.command_line import CommandLine
from cli.conftest import Shop

ORPHAN = {
    "table", "rows", "bytes", "refreshed_at", "age_seconds", "problem", "readers", "slots",
    "renamed", "publications", "commands",
}  # fmt: skip


def rename_in_files(shop: Shop) -> None:
    """The author gives a declaration another name, and writes it in the query that reads it."""
    (shop.tables / "mart/revenue.sql").rename(shop.tables / "mart/turnover.sql")
    best = shop.tables / "mart/best.sql"
    best.write_text(best.read_text().replace("mart.revenue", "mart.turnover"))


def statuses(shop: CommandLine) -> dict[str, str]:
    return {each["table"]: each["status"] for each in shop.json("status")}


def test_a_renamed_declaration_is_new_and_its_table_orphaned(shop: Shop) -> None:
    rename_in_files(shop)
    shop.sell(22)
    assert statuses(shop) == {
        "mart.best": "ACTIVE", "mart.busy": "ACTIVE",
        "mart.revenue": "ORPHANED", "mart.turnover": "NEW",
    }  # fmt: skip
    assert "no declaration has its name" in shop.said("status mart.revenue")
    assert statuses(shop.undeclared)["mart.revenue"] == "ACTIVE", "it is not known"

    found = shop.by_table("events -n 1")
    assert found["mart.revenue"]["kind"] == "orphaned"
    assert "4 rows stored" in found["mart.revenue"]["message"]
    assert shop.json("events --alerts") == []
    said = shop.said("metrics")
    assert 'streamtables_status{status="ORPHANED",table="mart.revenue"} 1.0' in said
    assert 'streamtables_rows{table="mart.revenue"} 4.0' in said
    assert 'streamtables_staleness_seconds{table="mart.revenue"}' not in said
    assert 'streamtables_staleness_seconds{table="mart.busy"}' in said


def test_an_orphan_is_no_alert_whatever_failed_before(shop: Shop) -> None:
    shop.declare("best", "SELECT 1 DIV (total - total) AS n, customer FROM mart.revenue")
    shop.said("refresh mart.best", code=1)
    [alert] = shop.json("events --alerts")
    assert (alert["table"], alert["kind"]) == ("mart.best", "failed")
    (shop.tables / "mart/best.sql").unlink()
    assert shop.json("events --alerts") == []
    assert 'streamtables_errors_in_a_row{table="mart.best"}' not in shop.said("metrics")
    shop.said("suspend mart.best --why moving")
    assert statuses(shop)["mart.best"] == "ORPHANED"
    assert "suspended: moving" in shop.said("status")
    assert "mart.best" not in shop.said("status --strict mart.busy")


def test_a_table_that_only_ever_failed_goes_with_its_declaration(shop: Shop) -> None:
    file = shop.declare("shares", "SELECT id, 1 DIV (id - id) AS n FROM sales.orders")
    shop.said("refresh mart.shares", code=1)
    assert statuses(shop)["mart.shares"] == "NEW"
    assert "DIVIDE_BY_ZERO" in shop.said("status")
    file.unlink()
    for command in ("status", "metrics", "events", "stats", "retention", "orphans"):
        assert "mart.shares" not in shop.said(command), command
    assert statuses(shop.undeclared)["mart.shares"] == "NEW", "it is not known"
    assert shop.said("drop mart.shares -y").startswith("Dropped mart.shares")
    assert "mart.shares" not in statuses(shop.undeclared)


def test_a_suspension_by_a_person_stays_in_sight(shop: Shop) -> None:
    shop.said("suspend mart.later --why 'not before May'")
    assert statuses(shop)["mart.later"] == "SUSPENDED"
    shop.said("resume mart.later")
    assert "mart.later" not in statuses(shop)


def test_orphans_are_listed_with_what_to_do(shop: Shop) -> None:
    assert shop.said("orphans --strict") == "Every stored stream table is declared.\n"
    assert shop.json("orphans") == []
    rename_in_files(shop)
    (shop.tables / "mart/busy.sql").unlink()
    shop.said("slots create search mart.revenue")
    shop.said("publications create shop --table mart.revenue")

    busy, revenue = shop.json("orphans")
    assert set(revenue) == ORPHAN, "the keys are stable"
    assert (busy["table"], busy["rows"], busy["readers"]) == ("mart.busy", 1, [])
    assert busy["commands"] == ["streamtables drop mart.busy"]
    assert (revenue["rows"], revenue["readers"]) == (4, ["mart.best"])
    assert (revenue["slots"], revenue["publications"]) == (["search"], ["shop"])
    rename, drop = "rename mart.revenue mart.turnover", "drop mart.revenue"
    assert revenue["commands"] == [f"streamtables {rename}", f"streamtables {drop}"]
    assert revenue["bytes"] > 0
    assert datetime.fromisoformat(revenue["refreshed_at"])
    said = shop.said("orphans --strict", code=3).splitlines()[2]
    assert "mart.best, slot search, publication shop\tstreamtables rename mart.revenue " in said
    for file in shop.tables.rglob("*.sql"):
        file.unlink()
    assert len(shop.json("orphans")) == 3, "an empty folder declares nothing"
    assert "no declaration of a stream table" in shop.undeclared.refused("orphans")


def test_a_refresh_of_a_former_name_says_what_became_of_it(shop: Shop) -> None:
    rename_in_files(shop)
    said = shop.refused("refresh mart.revenue")
    assert 'no stream table "mart.revenue" is declared' in said
    assert "mart.turnover has its query" in said
    assert "streamtables rename mart.revenue mart.turnover" in said
    assert "streamtables orphans" in said
    (shop.tables / "mart/busy.sql").unlink()
    said = shop.run("refresh mart.busy").stderr
    assert "streamtables rename mart.busy NEW" in said
    assert "has its query" not in said
    assert "did you mean" not in said
    unknown = shop.run("refresh mart.costs").stderr
    assert "declared are: mart.turnover, mart.best" in unknown
    assert "did you mean mart.best?" in shop.run("refresh mart.besd").stderr
    assert "streamtables orphans" not in unknown


def test_rename_keeps_the_table(shop: Shop) -> None:
    rename_in_files(shop)
    shop.said("suspend mart.revenue --why moving")
    done = shop.json("rename mart.revenue mart.turnover")
    assert (done["table"], done["former"], done["rows"]) == ("mart.turnover", "mart.revenue", 4)
    assert (done["readers"], done["rebuilt"]) == (["mart.best"], [])
    assert not Path(shop.root, "mart/revenue").exists()
    assert statuses(shop)["mart.turnover"] == "SUSPENDED"
    shop.said("resume mart.turnover")
    assert {each["action"] for each in shop.json("refresh")} == {"NO_DATA"}
    shop.sell(22, 23)
    found = {each["table"]: each["action"] for each in shop.json("refresh")}
    assert found["mart.turnover"] == "DIFFERENTIAL"
    assert all(each["equal"] for each in shop.json("check"))
    assert 'renamed from "mart.revenue"' in shop.said("history mart.turnover")
    assert shop.said("orphans --strict") == "Every stored stream table is declared.\n"
    again = shop.said("rename mart.revenue mart.turnover")
    assert "Renamed mart.revenue to mart.turnover: 4 rows" in again, "it finishes the first"


def test_a_rename_that_cannot_be_done_says_why(shop: Shop) -> None:
    def refused(*names: str) -> str:
        said = shop.refused("rename", *names)
        assert "fix: " in said
        return said

    said = refused("mart.revenue", "mart.turnover")
    assert '"mart.turnover" is not declared' in said
    assert "rename the declaration of mart.revenue first" in said
    assert '"mart.busy" is still declared' in refused("mart.busy", "mart.best")
    rename_in_files(shop)
    assert 'no stream table "mart.sales" is declared' in refused("mart.revenue", "mart.sales")
    shop.said("publications create shop --table mart.revenue")
    said = refused("mart.revenue", "mart.turnover")
    assert '"mart.revenue" is published by "shop"' in said
    assert "publications alter shop --remove mart.revenue" in said
    shop.said("publications alter shop --remove mart.revenue")
    shop.said("rename mart.revenue mart.turnover")


def test_drop_says_first_what_goes(shop: Shop) -> None:
    asked = shop.run("drop mart.revenue --force")
    assert asked.exit_code == 1, "nobody answered the question"
    what = r"mart\.revenue: 4 rows, \d.* These stream tables read it: mart\.best\."
    assert re.search(what, asked.stderr)
    assert Path(shop.root, "mart/revenue").exists()
    said = shop.said("drop mart.revenue --force --dry-run")
    assert said.startswith("Would drop mart.revenue: 4 rows")
    assert shop.json("drop mart.busy --dry-run")["rows"] == 1
    assert Path(shop.root, "mart/busy").exists()
    unknown = shop.run("drop mart.none")
    assert (unknown.exit_code, "Delete" in unknown.output) == (1, False)
    shop.said("slots create search mart.best")
    assert "These slots follow it: search." in shop.said("drop mart.best -y")
