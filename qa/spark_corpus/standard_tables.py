"""The tables that Spark's suite makes for every file, from its code and its data files.

``tenk1`` has 10,000 rows there, and 2,000 here: those whose first number is below that.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv

_WISCONSIN = [
    *("unique1", "unique2", "two", "four", "ten", "twenty", "hundred", "thousand", "twothousand"),
    *("fivethous", "tenthous", "odd", "even"),
]
_TEXTS = ["stringu1", "stringu2", "string4"]
_TENK_ROWS = 2_000


def standard_tables(data: Path) -> dict[str, pa.Table]:
    """The tables by name, from the folder of the suite's data."""
    wisconsin = dict.fromkeys(_WISCONSIN, pa.int32()) | dict.fromkeys(_TEXTS, pa.string())
    tenk = _read(data / "tenk.data", wisconsin)
    return {
        "testdata": pa.table(
            {
                "key": pa.array(range(1, 101), pa.int32()),
                "value": [str(each) for each in range(1, 101)],
            }
        ),
        "arraydata": pa.table(
            {
                "arraycol": pa.array([[1, 2, 3], [2, 3, 4]], pa.list_(pa.int32())),
                "nestedarraycol": pa.array(
                    [[[1, 2, 3]], [[2, 3, 4]]], pa.list_(pa.list_(pa.int32()))
                ),
            }
        ),
        "mapdata": pa.table(
            {
                "mapcol": pa.array(
                    [
                        [(key, f"{letter}{row}") for key, letter in enumerate("abcde"[:size], 1)]
                        for row, size in enumerate((5, 4, 3, 2, 1), start=1)
                    ],
                    pa.map_(pa.int32(), pa.string()),
                )
            }
        ),
        "aggtest": _read(data / "agg.data", {"a": pa.int32(), "b": pa.float32()}),
        "onek": _read(data / "onek.data", wisconsin),
        "tenk1": tenk.filter(pyarrow.compute.field("unique1") < _TENK_ROWS),
    }


def _read(file: Path, columns: dict[str, pa.DataType]) -> pa.Table:
    return pyarrow.csv.read_csv(
        file,
        read_options=pyarrow.csv.ReadOptions(column_names=list(columns)),
        parse_options=pyarrow.csv.ParseOptions(delimiter="\t"),
        convert_options=pyarrow.csv.ConvertOptions(column_types=columns),
    )
