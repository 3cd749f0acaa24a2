"""`streamtables publications` and `streamtables replications`, from one lake to another."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable

from changes.table import Table
from cli.command_line import CommandLine
from cli.test_metrics import values
from dagster_streamtables.replication.lifecycle.replication_manager import Replications
from replication.lifecycle.origins import rows


class Two(CommandLine):
    """A lake that subscribes, and one with the table `shop.t`, which is published as `p`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "here")
        self.there = CommandLine(folder / "there")

    @property
    def table(self) -> Table:
        return Table(self.there.lake.location("shop.t"))


@pytest.fixture
def two(tmp_path: Path) -> Two:
    made = Two(tmp_path)
    (tmp_path / "here").mkdir()
    Table.new(made.there.lake.location("shop.t")).insert((1, "a"), (2, "b"))
    return made


def published(two: Two) -> Two:
    two.there.said("publications create p --table shop.t --key k")
    return two


def subscribed(two: Two, *options: str) -> Two:
    published(two)
    two.said("replications create r --publication p --lake", two.there.root, *options)
    return two


def test_a_publication_from_its_creation_to_its_end(two: Two) -> None:
    create = "publications create p --table shop.t --key k --where 'k > 1'"
    said = two.there.said(create, "--publish", "insert,delete")
    assert said == "Publication p is created: shop.t\n  shop.t: where k > 1; key k\n"
    Table.new(two.there.lake.location("shop.u"))
    two.there.said("publications alter p --add shop.u --columns k")
    two.there.said("publications alter p --remove shop.t --rename q")
    shown = two.there.said("publications show q")
    assert "publishes delete, insert: shop.u\n  shop.u: columns k\n" in shown
    [found] = two.there.json("publications list")
    assert (found["name"], found["operations"]) == ("q", ["delete", "insert"])
    assert "shop.u" in two.there.said("publications list")
    assert "not exactly one table" in two.there.refused("publications create x --key k")
    two.there.said("publications drop q")
    assert two.there.said("publications list") == "There are no publications.\n"


def test_a_replication_from_its_creation_to_its_end(two: Two) -> None:
    published(two)
    assert two.said("replications list") == "There are no replications.\n"
    create = "replications create r --publication p --target shop.t=raw.shop --lake"
    said = two.said(create, two.there.root)
    assert said == "Replication r is created: shop.t → raw.shop\n"
    assert two.said("replications refresh") == "r: COPY; raw.shop 2 copied\n"
    two.table.insert((3, "c"))
    assert two.json("replications lag r")["commits"] == 1
    assert "commits" in two.said("replications lag r")
    [done] = two.json("replications refresh r")
    assert (done["action"], done["tables"]["raw.shop"]["inserted"]) == ("CHANGES", 1)
    assert two.said("replications refresh") == "r: NO_DATA\n"
    assert "is equal to its origin" in two.said("replications check r")
    [status] = two.json("replications list")
    assert (status["enabled"], status["errors"], status["error"]) == (True, 0, None)
    assert "enabled" in two.said("replications list")
    shown = two.said("replications show r")
    for each in ("shop.t", "raw.shop", "ready", "on_conflict=error", two.there.root):
        assert each in shown
    assert "stay" in two.said("replications drop r")
    assert rows(two.lake, "raw.shop") == Counter([(1, "a"), (2, "b"), (3, "c")])
    assert two.there.lake.slots.names() == []


def test_a_slot_with_a_deadline(two: Two) -> None:
    subscribed(two, "--slot-deadline", "7d").said("replications refresh r")
    assert two.there.lake.slots.read("r").deadline == 7 * 86_400
    said = two.refused("replications create s --lake /l --publication p --slot-deadline soon")
    assert '"soon" is not a duration' in said


def test_a_difference_is_shown_and_copied_away(two: Two) -> None:
    subscribed(two).said("replications refresh r")
    DeltaTable(two.lake.location("shop.t")).update(predicate="k = 1", updates={"v": "'x'"})
    said = two.said("replications check r", code=3)
    assert "1 row missing, 1 unexpected" in said and "missing: k=1, v='a'" in said
    assert two.json("replications check r shop.t", code=3)["equal"] is False
    assert "2 copied" in two.said("replications copy r shop.t")
    two.said("replications check r")


def test_a_conflict_is_left_out(two: Two) -> None:
    subscribed(two).said("replications refresh r")
    Table(two.lake.location("shop.t")).insert((3, "mine"))
    two.table.insert((3, "theirs"))
    said = two.refused("replications refresh r")
    assert "conflicts with a row that its target already has" in said
    assert "conflicts with a row" in two.said("replications list")
    position = str(two.table.version)
    assert "will leave out shop.t@" in two.said("replications skip r", position)
    assert f"left out: shop.t@{position}" in two.said("replications refresh r")
    assert "is applied already" in two.refused("replications skip r", position)
    assert "is not a position" in two.refused("replications skip r soon")


def test_it_is_disabled_detached_and_dropped(two: Two) -> None:
    subscribed(two).said("replications refresh r")
    two.said("replications disable r")
    assert "is disabled" in two.refused("replications refresh r")
    assert two.said("replications refresh") == "There are no replications to refresh.\n"
    two.said("replications enable r")
    assert "Drop its slot r at the publisher" in two.said("replications detach r")
    assert "has no slot" in two.refused("replications enable r")
    assert "detached" in two.said("replications show r")
    two.said("replications drop r")
    assert two.there.lake.slots.names() == ["r"]
    assert 'there is no replication "r"' in two.refused("replications show r")


def test_metrics_are_those_of_status_and_lag(two: Two) -> None:
    subscribed(two)
    found = two.said("metrics")
    assert values(found, "replication_tables")["r", "new"] == 1
    assert values(found, "replication_lag_unknown") == {}
    two.said("replications refresh r")
    two.table.insert((3, "c"))
    found = two.said("metrics")
    assert values(found, "replication_lag_commits") == {("r",): 1}
    assert values(found, "replication_lag_seconds")[("r",)] > 0
    assert values(found, "replication_lag_bytes")[("r",)] > 0
    assert values(found, "replication_enabled") == {("r",): 1}
    assert values(found, "replication_last_refresh_timestamp_seconds")[("r",)] > 0
    shutil.rmtree(two.there.root)
    two.refused("replications refresh r")
    two.said("replications disable r")
    found = two.said("metrics")
    assert values(found, "replication_lag_unknown") == {("r",): 1}
    assert values(found, "replication_lag_seconds") == {}
    assert values(found, "replication_errors_in_a_row") == {("r",): 1}
    assert values(found, "replication_enabled") == {("r",): 0}
    assert values(found, "replications_unreadable") == {(): 0}


FILES = {
    "replications.yaml": """
replications:
  - {name: r, lake: ROOT, publications: [p], target_schema: raw}
""",
    "replications.toml": """
[[replications]]
name = "r"
lake = "ROOT"
publications = ["p"]
target_schema = "raw"
""",
}


def declared(two: Two, name: str = "replications.yaml", schema: str = "raw") -> str:
    file = Path(two.root) / name
    file.write_text(FILES[name].replace("ROOT", two.there.root).replace("raw", schema))
    return str(file)


@pytest.mark.parametrize("name", FILES)
def test_declarations_in_a_file(two: Two, name: str) -> None:
    published(two)
    said = two.said("replications create --file", declared(two, name))
    assert said == "Replication r is created: shop.t → raw.t\n"
    two.said("replications refresh")
    said = two.said("replications create -f", declared(two, name, "other"))
    assert "is altered: shop.t → other.t" in said
    assert two.said("replications refresh") == "r: COPY; other.t 2 copied\n"


def test_a_declaration_is_altered_by_the_options_of_create(two: Two) -> None:
    subscribed(two).said("replications refresh r")
    dry = two.said("replications alter r --add-columns --max-rows 5 --dry-run")
    assert dry == (
        "Replication r would change.\nsetting\tbefore\tafter\nadd-columns\tno\tyes\n"
        "max-rows\t200000\t5\n"
    )
    assert "add_columns=False" in two.said("replications show r")
    said = two.said("replications alter r --add-columns --max-rows 5")
    assert said == dry.replace("would change", "is altered")
    assert "already" in two.said("replications alter r --add-columns")
    two.said("replications alter r --no-add-columns --reset max-rows")
    [found] = two.json("replications list")
    settings = found["replication"]
    assert (settings["add_columns"], settings["max_rows"]) == (False, 200_000)
    said = two.said("replications alter r --target shop.t=raw.other")
    assert "The next refresh copies shop.t → raw.other." in said
    changed = two.json("replications alter r --target-schema raw --reset target")
    assert changed["changes"]["schema"] == {"before": None, "after": "raw"}
    assert changed["copied"] == ["shop.t"]
    assert two.said("replications refresh") == "r: COPY; raw.t 2 copied\n"
    two.said("replications alter r --slot-deadline 7d --stopped-deadline never")
    two.table.insert((3, "c"))
    two.said("replications refresh r")
    assert rows(two.lake, "raw.t") == Counter([(1, "a"), (2, "b"), (3, "c")])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--slot", "other"), "cannot change its slot"),
        (("--postgres", "host=db", "--table", "public.t"), "cannot change its kind of publisher"),
        (("--drop-publication", "x"), 'does not name "x"'),
        (("--add-table", "shop.u"), "names no tables"),
        (("--on-conflict", "ignore"), "on_conflict"),
        (("--stopped-deadline", "soon"), "not a duration"),
        (("--password-env", "X"), 'has no setting "password_env"'),
    ],
)
def test_what_cannot_be_altered_is_told_with_the_reason(
    two: Two, options: tuple[str, ...], told: str
) -> None:
    subscribed(two)
    before = two.said("replications show r")
    assert told in two.refused("replications alter r", *options)
    assert "no setting 'x'" in two.refused("replications alter r --reset x", code=2)
    assert two.said("replications show r") == before


def test_an_unexpected_error_of_a_refresh_is_one_line(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refresh(*_: object, **__: object) -> None:
        raise ValueError("no such thing")

    monkeypatch.setattr(Replications, "refresh", refresh)
    said = two.refused("replications refresh r")
    assert said.startswith("an unexpected error: ValueError: no such thing\n")


def test_a_table_in_trouble_is_shown_and_the_others_go_on(two: Two) -> None:
    Table.new(two.there.lake.location("shop.u")).insert((1, "a"))
    subscribed(two)
    two.there.said("publications alter p --add shop.u --key k")
    two.said("replications refresh r")
    shutil.rmtree(two.lake.location("shop.t"))
    Table(two.there.lake.location("shop.u")).insert((2, "b"))
    done = two.run("replications refresh r")
    assert done.exit_code == 1 and "is not the table that was written" in done.stderr
    assert done.stdout == "r: CHANGES; shop.u 1 inserted; shop.t is in trouble\n"
    assert rows(two.lake, "shop.u") == Counter([(1, "a"), (2, "b")])
    shown = two.said("replications show r")
    copy = "streamtables replications copy r shop.t"
    for each in ("stopped", "changes kept until", copy, "since"):
        assert each in shown
    assert "1 of 2 tables in trouble" in two.said("replications list")
    assert "shop.t, stopped since" in two.said("replications lag r")
    current = values(two.said("metrics"), "replication_table_current")
    assert current == {("r", "shop.t"): 0, ("r", "shop.u"): 1}
    assert "was not compared" in two.said("replications check r", code=3)
    two.said("replications copy r shop.t")
    assert "is equal to its origin" in two.said("replications check r")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (
            "replications: [{name: r, lake: /l, publications: [p], slot_deadline: 7w}]",
            "not a duration",
        ),
        ("replications: [{name: r, lake: /l, publications: [p], slot_deadline: 0}]", "timedelta"),
        ("replications: [{name: r, postgres: x, tables: [t], slot_deadline: 7d}]", "no setting"),
        ("replications: {r: {}}", "declares no replications"),
        ("replications: [{name: r}]", "names nothing to read from"),
        ("replications: [{name: r, lake: /l, postgres: host=x}]", "names both a server and a lake"),
        ("replications: [{name: r, lake: /l, tables: [t]}]", 'has no setting "tables"'),
        ("replications: [{name: r, lake: /l, publications: [p], on_conflict: x}]", "on_conflict"),
        ("replications: [{name: r, postgres: 'host=x password=s3cret', tables: [t]}]", "password"),
        ("a: [", "cannot be read"),
        (None, "cannot be read"),
    ],
)
def test_wrong_files(two: Two, tmp_path: Path, content: str | None, told: str) -> None:
    file = tmp_path / "r.yaml"
    if content is not None:
        file.write_text(content)
    said = two.refused("replications create --file", str(file))
    assert told in said and "s3cret" not in said


def test_wrong_options(two: Two) -> None:
    published(two)
    assert "names nothing to read from" in two.refused("replications create r")
    assert "is no pair" in two.refused("replications create r --type x", code=2)
    file = declared(two)
    assert "does not declare" in two.refused("replications create x --file", file)
    assert "declared twice" in two.refused("replications create r --lake /l --file", file)
    secret = "postgresql://me:s3cret@host/shop"
    said = two.refused("replications create r --postgres", secret, "--publication", "p")
    assert "has a password" in said and "s3cret" not in said
