"""A resume token may come from anywhere, as over HTTP: it has no other tables looked at."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from dagster_streamtables import Lake, subscribe
from dagster_streamtables.changes.position import position_of
from dagster_streamtables.errors import RefusedOperation


def test_a_token_that_names_another_table_is_refused(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    write_deltalake(lake.location("t"), pa.table({"k": [1]}))
    followed = subscribe(lake, "t")
    first = followed.next_batch(0)
    assert first is not None and first.num_rows == 1
    assert followed.next_batch(0) is None
    assert not followed.ended
    assert followed.token is not None
    position = position_of(followed.token)
    [seen] = position.frontier.values()
    forged = replace(position, frontier={"t": seen, "delta.`/etc/secrets`": seen})
    with pytest.raises(RefusedOperation, match="of another subscription"):
        subscribe(lake, "t", resume=forged.token)
    followed.close()
    assert followed.ended
