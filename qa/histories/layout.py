"""Files that are written anew, rows that stay: what a refresh must not take for a change."""

from __future__ import annotations

import json
import time
from random import Random

from qa.histories.kinds import statement, step
from qa.histories.world import Refused, World

statement("optimize", 2, "OPTIMIZE {t}")
statement("zorder", 1, *(f"OPTIMIZE {{t}} ZORDER BY ({name})" for name in ("id", "v", "d", "x")))
statement("purge", 1.5, "REORG TABLE {t} APPLY (PURGE)")
statement(
    "upgrade-uniform", 0.5, "REORG TABLE {t} APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))"
)


@step(2)
def vacuum(world: World, _: Random) -> None:
    world.sql(
        "VACUUM {t} RETAIN 0 HOURS",
        spark__databricks__delta__retentionDurationCheck__enabled="false",
    )


@step(1)
def delta_rs_compact(world: World, _: Random) -> None:
    world.table().optimize.compact()


@step(0.5)
def delta_rs_zorder(world: World, _: Random) -> None:
    world.table().optimize.z_order(["id"])


@step(1)
def delta_rs_vacuum(world: World, _: Random) -> None:
    world.table().vacuum(0, enforce_retention_duration=False, dry_run=False)


@step(2)
def statistics_again(world: World, random: Random) -> None:
    """What Delta's recomputed statistics commit: live files again, `dataChange` false.

    `StatisticsCollection.recompute` is there in Scala only, so the commit is written here.
    """
    live = live_files(world)
    if not live:
        raise Refused
    chosen = [each for each in live if random.random() < 0.7] or live
    for add in chosen:
        add["dataChange"] = False
        if random.random() < 0.3:
            stats = json.loads(add.get("stats") or "{}")
            add["stats"] = json.dumps({"numRecords": stats.get("numRecords")})
    commit(world, "COMPUTE STATS", [{"add": add} for add in chosen])


def commit(world: World, operation: str, actions: list[dict]) -> None:
    """Write a commit by hand, as any writer of the protocol may."""
    if "inCommitTimestamp" in world.features or "rowTracking" in world.features:
        raise Refused  # a commit of such a table has to say more
    info = {
        "timestamp": int(time.time() * 1000),
        "operation": operation,
        "operationParameters": {},
        "engineInfo": "Apache-Spark/4.2.0 Delta-Lake/4.4.0",
    }
    lines = [{"commitInfo": info}, *actions]
    path = world.t / f"_delta_log/{world.version + 1:020d}.json"
    with path.open("x") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines))


def live_files(world: World) -> list[dict]:
    """The files of the table as their newest commits have them, as far as commits are there."""
    live: dict[str, dict] = {}
    for path in sorted((world.t / "_delta_log").glob("*[0-9].json")):
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        for each in actions:
            live.pop(each.get("remove", {}).get("path"), None)
        live |= {each["add"]["path"]: each["add"] for each in actions if "add" in each}
    return _only_if_whole(world, live)


def _only_if_whole(world: World, live: dict[str, dict]) -> list[dict]:
    """Nothing, where a checkpoint holds more than the commits."""
    if len(world.table().file_uris()) != len(live):
        raise Refused
    return [each for each in live.values() if not each.get("deletionVector")]
