"""The life of a flight, from the one row that the data set has of it.

    scheduled ──▶ departed ──▶ landed | diverted
        └───────▶ cancelled | gone

A flight is announced a day before it is due. Departure and arrival fill in what is known then. Of
those that never left, the ones that had no plane yet were withdrawn by their carrier and are
deleted; the others stay, as cancelled.

The data set gives times as local clock readings without a date. Departures are dated by their
scheduled hour (which is given as an instant) and their delay; arrivals by taking the first time
after departure at which the clocks at the destination show the reading.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import pyarrow as pa

NOTICE = pd.Timedelta(hours=24)
"""How long before its scheduled departure a flight is announced."""
CALLED_OFF = pd.Timedelta(hours=2)
"""How long before its scheduled departure a flight is cancelled or withdrawn."""

SCHEMA = pa.schema(
    [
        ("flight_id", pa.int64()),
        ("flight_month", pa.string()),  # of flight_date, as 2013-01
        ("flight_date", pa.date32()),  # in New York
        ("carrier", pa.string()),
        ("flight", pa.int32()),
        ("tailnum", pa.string()),
        ("origin", pa.string()),
        ("dest", pa.string()),
        ("distance", pa.int32()),  # miles
        ("scheduled_departure", pa.timestamp("us", tz="UTC")),
        ("scheduled_arrival", pa.timestamp("us", tz="UTC")),
        ("departed_at", pa.timestamp("us", tz="UTC")),
        ("arrived_at", pa.timestamp("us", tz="UTC")),
        ("dep_delay", pa.int32()),  # minutes, negative if early
        ("arr_delay", pa.int32()),
        ("air_time", pa.int32()),  # minutes
        ("status", pa.string()),
        ("since", pa.timestamp("us", tz="UTC")),
        ("until", pa.timestamp("us", tz="UTC")),
    ]
)
_KNOWN_AT_DEPARTURE = ["departed_at", "dep_delay"]
_KNOWN_AT_ARRIVAL = ["arrived_at", "arr_delay", "air_time"]
_ISLANDS = "America/Puerto_Rico"
"""The zone of the four destinations that the data set's airports lack."""


def flight_versions(raw: pd.DataFrame, zones: Mapping[str, str | None]) -> pa.Table:
    """Every version of every flight, with the columns of `SCHEMA`.

    Args:
        raw: The data set's flights.
        zones: The time zone of each airport, by its code.
    """
    flights = _dated(raw, zones)
    stages = [_scheduled(flights), _departed(flights), _finished(flights), _cancelled(flights)]
    return pa.concat_tables(
        pa.Table.from_pandas(stage, schema=SCHEMA, preserve_index=False) for stage in stages
    )


def _dated(raw: pd.DataFrame, zones: Mapping[str, str | None]) -> pd.DataFrame:
    """One row a flight, all of it known, its clock readings turned into instants."""
    hour = pd.to_datetime(raw["time_hour"], utc=True)
    date = pd.to_datetime(raw[["year", "month", "day"]])
    flights = raw.assign(
        flight_month=date.dt.strftime("%Y-%m"),
        flight_date=date,
        scheduled_departure=hour + _minutes(raw["minute"]),
        zone=[zones.get(dest) or _ISLANDS for dest in raw["dest"]],
    )
    order = ["scheduled_departure", "carrier", "flight", "origin"]
    flights = flights.sort_values(order, ignore_index=True)
    # Numbered in the order of their departures, a day's flights lie in few files of the table.
    flights["flight_id"] = flights.index + 1
    flights["departed_at"] = flights["scheduled_departure"] + _minutes(flights["dep_delay"])
    return flights.assign(
        scheduled_arrival=_arrival(flights, "scheduled_departure", "sched_arr_time"),
        arrived_at=_arrival(flights, "departed_at", "arr_time"),
    )


def _arrival(flights: pd.DataFrame, departure: str, reading: str) -> Any:
    """When the clocks at the destination first show `reading` (as hhmm) after `departure`."""
    local = [
        moments.dt.tz_convert(zone).dt.tz_localize(None)
        for zone, moments in flights.groupby("zone")[departure]
    ]
    left = pd.concat(local).sort_index().dt
    shown = flights[reading] // 100 * 60 + flights[reading] % 100
    return flights[departure] + _minutes((shown - left.hour * 60 - left.minute) % 1440)


def _minutes(numbers: Any) -> Any:
    return pd.to_timedelta(numbers, unit="min")


def _scheduled(flights: pd.DataFrame) -> pd.DataFrame:
    left = flights["departed_at"]
    off = flights["scheduled_departure"] - CALLED_OFF
    return flights.assign(
        **dict.fromkeys(_KNOWN_AT_DEPARTURE + _KNOWN_AT_ARRIVAL),
        status="scheduled",
        since=flights["scheduled_departure"] - NOTICE,
        until=left.fillna(off),
    )


def _departed(flights: pd.DataFrame) -> pd.DataFrame:
    flights = flights.dropna(subset="departed_at")
    return flights.assign(
        **dict.fromkeys(_KNOWN_AT_ARRIVAL),
        status="departed",
        since=flights["departed_at"],
        until=_end(flights),
    )


def _finished(flights: pd.DataFrame) -> pd.DataFrame:
    """The last version of those that flew. Without an arrival delay a flight ended elsewhere."""
    flights = flights.dropna(subset="departed_at")
    landed = flights["arr_delay"].notna()
    status = ["landed" if each else "diverted" for each in landed]
    return flights.assign(status=status, since=_end(flights), until=pd.NaT)


def _cancelled(flights: pd.DataFrame) -> pd.DataFrame:
    """The last version of those that did not fly, without the ones that never had a plane."""
    flights = flights.query("departed_at.isna() and tailnum.notna()")
    called_off = flights["scheduled_departure"] - CALLED_OFF
    return flights.assign(status="cancelled", since=called_off, until=pd.NaT)


def _end(flights: pd.DataFrame) -> Any:
    """When a flight was over; of some diverted ones nobody knows, they get their planned time."""
    planned = flights["scheduled_arrival"] - flights["scheduled_departure"]
    return flights["arrived_at"].fillna(flights["departed_at"] + planned)
