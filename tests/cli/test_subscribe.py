"""`streamtables subscribe`: what it writes, where it ends, and how to go on after it."""

from __future__ import annotations

import io
import shutil
import signal
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from changes.reading import plain
from cli.following import Followed, accumulated, interrupted, lines, rows_of, token_in
from dagster_streamtables.runtime.errors.slot_errors import MissingSlot

pytestmark = pytest.mark.process

ALL = [
    (1, 1, 1, "a"), (1, 1, 2, "b"), (2, -1, 1, "a"), (2, 1, 1, "A"), (3, -1, 2, "b"),
    (4, 2, 3, "c"),
]  # fmt: skip
NOW = {(1, "A"): 1, (3, "c"): 2}
ORDER = ("--order-by", "k,_diff")


def lose_history(t: Followed) -> None:
    t.table.create_checkpoint()
    for version in (0, 1, 2):
        (Path(t.place) / "_delta_log" / f"{version:020}.json").unlink()


def test_rows_and_then_changes_in_each_format(t: Followed) -> None:
    every = ("subscribe", "shop.t", "--as-of", "0", "--up-to", "5", *ORDER, "--format")
    assert t.said(*every, "text").splitlines()[:4] == [
        "_timestamp  _diff  k  v",
        "         1      1  1  a",
        "         1      1  2  b",
        "         2     -1  1  a",
    ]
    assert t.said(*every, "csv").splitlines()[:2] == ["_timestamp,_diff,k,v", "1,1,1,a"]
    assert t.said(*every, "copy").splitlines()[-1] == "4\t2\t3\tc"
    assert rows_of(t.said(*every, "ndjson")) == ALL
    arrow = pa.ipc.open_stream(io.BytesIO(t.run(*every, "arrow").stdout_bytes)).read_all()
    assert plain(arrow) == ALL


def test_it_begins_and_ends_where_it_is_told(t: Followed) -> None:
    assert t.rows("--as-of", "3") == [(3, 1, 1, "A"), (4, 2, 3, "c")]
    assert t.rows("--as-of", "2", "--no-snapshot") == ALL[4:]
    assert t.rows("--at-least", "3") == t.rows("--as-of", "3")
    assert t.rows("--as-of", "1", "--up-to", "2") == ALL[:2]
    assert {row[0] for row in t.rows()} == {4}, "the newest version"
    assert t.rows("--as-of", "99") == [], "it waits, and the time is over"
    assert t.rows("--as-of", "0", "--max-rows", "2") == ALL[:2]
    assert len(t.rows("--as-of", "0", "--max-rows", "5")) == 5
    assert t.rows("--as-of", "2999-01-01") == []


def test_progress_envelopes_and_names(t: Followed) -> None:
    assert t.rows("--as-of", "3", "--up-to", "4", "--progress") == [
        (3, True, None, None, None), (3, False, 1, 1, "A"), (4, True, None, None, None),
    ]  # fmt: skip
    assert t.rows("--as-of", "0", "--envelope", "upsert", "--key", "k")[-2:] == [
        (3, "delete", 2, None), (4, "key_violation", 3, None),
    ]  # fmt: skip
    twice = ("--envelope", "debezium", "--key", "v,k")
    assert t.rows("--as-of", "3", *twice)[0] == (3, "insert", 1, "A")
    assert t.rows("--as-of", "3", "--envelope", "debezium", "--key", "v", "--key", "k") == (
        t.rows("--as-of", "3", *twice)
    )
    every = ("subscribe", "shop.t", "--timeout", "0")
    [heading, *_] = t.said(*every, "--as-of", "3", *twice).splitlines()
    assert heading.split() == ["_timestamp", "_state", "v", "k"]
    assert t.said(*every, "--names", "materialize").startswith("mz_timestamp  mz_diff")
    assert {row[0] > 10**12 for row in t.rows("--clock", "ms")} == {True}


def test_how_to_go_on_is_told_unless_the_end_is_reached(t: Followed) -> None:
    whole = t.run("subscribe shop.t --as-of 0 --up-to 5")
    assert (whole.exit_code, whole.stderr) == (0, "")
    for end in (("--timeout", "0"), ("--max-rows", "2")):
        assert token_in(t.run("subscribe shop.t --as-of 0", *end).stderr)
    cut = t.run("subscribe shop.t --as-of 0 --max-rows 1").stderr
    assert "the last timestamp was cut: its rows come again" in cut
    assert t.rows("--resume", token_in(cut), *ORDER) == ALL


def test_an_empty_time_is_one_line_of_warning(t: Followed) -> None:
    done = t.run("subscribe shop.t --as-of 3 --up-to 3 --format ndjson")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "warning: the subscription begins and ends at 3, so it is empty\n"


def test_lost_history_is_no(t: Followed) -> None:
    token = token_in(t.run("subscribe shop.t --as-of 1 --max-rows 2").stderr)
    lose_history(t)
    assert "shop.t" in t.refused("subscribe shop.t --as-of 1", code=3)
    assert "shop.t" in t.refused("subscribe shop.t --resume", token, code=3)
    assert t.rows("--at-least", "1")[0][0] >= 3


@pytest.mark.parametrize(
    "after", [5, *(pytest.param(after, marks=pytest.mark.long) for after in (1, 2, 3, 6))]
)
def test_an_interrupt_loses_nothing_and_repeats_nothing(t: Followed, after: int) -> None:
    kind = signal.SIGTERM if after % 2 else signal.SIGINT
    every = ("shop.t", "--as-of", "0", "--format", "ndjson", *ORDER)
    with t.started(*every) as process:
        first = lines(process, after)
        rest, told = interrupted(process, kind)
    t.add((4, "d"))
    seen = rows_of(first + rest)
    assert seen + t.rows("--resume", token_in(told), *ORDER) == [*ALL, (5, 1, 4, "d")]


def test_an_interrupt_while_it_waits_or_has_not_begun(t: Followed) -> None:
    with t.started("shop.t", "--format", "csv") as process:
        lines(process, 3)
        rest, told = interrupted(process)
    assert (rest, t.rows("--resume", token_in(told))) == ("", [])
    with t.started("shop.t", "--as-of", "6", "--format", "csv") as process:
        lines(process, 1)
        assert interrupted(process) == ("", ""), "no time was read yet"


def test_a_pipe_that_is_closed_ends_it_quietly(t: Followed) -> None:
    with t.started("shop.t", "--as-of", "0", "--format", "ndjson") as process:
        first = ["head", "-n", "1"]
        head = subprocess.run(first, stdin=process.stdout, capture_output=True, check=True)
        assert process.stdout and process.stderr
        process.stdout.close()
        assert (process.wait(60), process.stderr.read()) == (0, ""), "though nothing changes"
    assert len(head.stdout.splitlines()) == 1


def test_a_slot_moves_by_what_was_written(t: Followed) -> None:
    every = ("--slot", "s", "--as-of", "0", *ORDER)
    assert t.rows(*every, "--max-rows", "2") == ALL[:2]
    assert t.rows(*every) == ALL, "nothing was acknowledged"
    assert t.rows(*every, "--ack", "--max-rows", "3") == ALL[:3]
    assert t.lake.slots.read("s").held["shop.t"].version == 1, "half of the next was written"
    assert t.rows(*every, "--ack") == ALL[2:]
    assert t.rows(*every, "--ack") == []
    t.table.optimize.compact()
    done = t.run("subscribe shop.t --slot s --ack --timeout 0")
    assert done.stderr == "resume with: --slot s --ack\n"
    assert t.lake.slots.read("s").held["shop.t"].version == 5, "versions without rows count, too"
    t.add((4, "d"))
    assert t.rows(*every, "--ack", "--up-to", "7") == [(6, 1, 4, "d")]
    assert t.lake.slots.read("s").reader is None


def test_an_interrupted_reader_frees_its_slot(t: Followed) -> None:
    every = ("--slot", "s", "--as-of", "0", "--ack", *ORDER)
    with t.started("shop.t", *every, "--format", "ndjson") as process:
        seen = lines(process, 3)
        assert 'slot "s" has a reader' in t.refused("subscribe shop.t --slot s")
        seen += interrupted(process)[0]
    assert rows_of(seen) + t.rows(*every) == ALL


def test_a_new_snapshot_is_told(t: Followed) -> None:
    token = token_in(t.run("subscribe shop.t --as-of 1 --max-rows 2").stderr)
    lose_history(t)
    every = ("subscribe", "shop.t", "--timeout", "0", "--format", "ndjson")
    done = t.run(*every, "--resume", token, "--on-history-lost", "resnapshot")
    assert accumulated(rows_of(done.stdout)) == NOW
    assert done.stderr.startswith("warning: history was lost: a new snapshot begins here")
    assert "warning" not in t.run(*every, "--resume", token_in(done.stderr)).stderr


BAD = {
    ("--key", "x", "--envelope", "upsert"): 'column "x" does not exist',
    ("--order-by", "x"): 'column "x" does not exist',
    ("--order-by", "k+1"): "invalid ORDER BY within a timestamp",
    ("--key", "k,k", "--envelope", "upsert"): 'column "k" is in the key more than once',
    ("--envelope", "upsert"): "the key of an envelope has no column",
    ("--key", "k", "--envelope", "debezium", "--order-by", "v"): "cannot be combined",
    ("--as-of", "3", "--up-to", "2"): "the subscription would end at 2, before it begins at 3",
    ("--as-of", "soon"): "as_of='soon' is not a time",
    ("--up-to", "-1"): "up_to='-1' is not a time",
    ("--resume", "abc"): "the resume token is damaged",
}


@pytest.mark.parametrize("options", BAD)
def test_bad_input_is_told_and_moves_no_slot(t: Followed, options: tuple[str, ...]) -> None:
    t.said("slots create s shop.t --as-of 1 --no-snapshot")
    before = t.lake.slots.read("s").token
    slot = () if "--resume" in options else ("--slot", "s", "--ack")
    if "--up-to" not in options or "-1" in options:
        assert BAD[options] in t.refused("subscribe shop.t", *options, *slot)
    assert BAD[options] in t.refused("subscribe shop.t", *options)
    after = t.lake.slots.read("s")
    assert (after.token, after.reader) == (before, None)


def test_what_means_nothing_together_is_an_invalid_command_line(t: Followed) -> None:
    for options, told in {
        (): "Give the name of a table, or a query with -q.",
        ("shop.t", "-q", "SELECT 1"): "Give the name of a table, or a query with -q.",
        ("shop.t", "--key", "k"): "--key needs --envelope.",
        ("shop.t", "--ack"): "--ack needs --slot.",
        ("shop.t", "--as-of", "1", "--at-least", "1"): "Give --as-of or --at-least.",
        ("shop.t", "--timeout", "soon"): "is no time",
        ("shop.t", "--max-rows", "0"): "--max-rows",
        ("shop.t", "--format", "xml"): "--format",
        ("shop.t", "--watch", "--progress"): "--progress means nothing with it",
        ("shop.t", "--watch"): "--watch needs a terminal.",
    }.items():
        said = t.refused("subscribe", *options, code=2).replace("│", " ")
        assert told in " ".join(said.split()), options


def test_tokens_and_slots_of_something_else(t: Followed) -> None:
    token = token_in(t.run("subscribe shop.t --timeout 0").stderr)
    other = "y" if token[30] == "x" else "x"
    for broken in (token[:-5], token[5:], token[:30] + other + token[31:]):
        assert "the resume token is damaged" in t.refused("subscribe shop.t --resume", broken)
    t.said("slots create s shop.t")
    write_deltalake(t.lake.location("shop.u"), t.table.to_pyarrow_table())
    told = t.refused("subscribe shop.u --resume", token)
    assert "the resume token belongs to another subscription" in told
    assert "follows" in t.refused("subscribe shop.u --slot s --ack")
    for option, told in (
        ("--clock ms", 'counts by the clock "version"'),
        ("--slot s", "cannot be combined"),
        ("--as-of 1", "begins at its token"),
    ):
        assert told in t.refused(f"subscribe shop.t {option} --resume", token)
    assert "there is no table" in t.refused("subscribe shop.none")
    with pytest.raises(MissingSlot):
        t.lake.slots.read("none")


def test_a_table_that_is_dropped_ends_it_with_an_error(t: Followed) -> None:
    with t.started("shop.t", "--format", "ndjson") as process:
        lines(process, 2)
        shutil.rmtree(t.place)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "resume with" in told and "dropped" in told


@pytest.mark.spark
def test_a_query_is_followed_without_being_stored(t: Followed) -> None:
    query = "SELECT v, COUNT(*) AS n FROM shop.t GROUP BY v"
    said = t.said("subscribe --as-of 3 --up-to 5 --format ndjson -q", query)
    assert rows_of(said) == [(3, 1, 1, "A"), (4, 1, 2, "c")], "n, and then v"
