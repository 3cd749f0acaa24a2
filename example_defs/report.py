"""An asset beside the stream tables: it reads one of them by the IO manager, and writes a table."""

# No `from __future__ import annotations`: Dagster reads the annotations of assets at run time.
import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

WORST = 10


@dg.asset(
    key_prefix="report",
    group_name="reports",
    kinds={"python", "deltalake"},
    ins={"days": dg.AssetIn(["delay", "carrier_days"])},
)
def latest_airlines(days: pa.Table) -> pa.Table:
    """The days on which airlines were late most, of the days with fifty landings and more."""
    busy = days.filter(pc.field("landed") >= 50)
    order = [("average_delay", "descending"), ("carrier", "ascending")]
    return busy.sort_by(order).slice(0, WORST)
