"""Replications as tables, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.text import Text

from dagster_streamtables import amounts
from dagster_streamtables.cli.grid import TableColumn, TableLayout, pairs
from dagster_streamtables.cli.output import color_text, count, moment, out, plain
from dagster_streamtables.replication.lifecycle.report import ReplicationCheck, ReplicationRefresh
from dagster_streamtables.replication.lifecycle.status import ReplicationStatus, TableStatus

REPLICATIONS = TableLayout(
    TableColumn("name"),
    TableColumn("from", text=True, wide=True),
    TableColumn("tables", number=True, wide=True),
    TableColumn("state"),
    TableColumn("refreshed"),
    TableColumn("errors", number=True, wide=True),
    TableColumn("error", text=True),
    TableColumn("warnings", text=True),
)
TABLES = TableLayout(
    TableColumn("table"),
    TableColumn("target"),
    TableColumn("state"),
    TableColumn("position", number=True),
    TableColumn("version", number=True),
    TableColumn("rows", number=True),
    TableColumn("error", text=True),
)


def status_values(status: ReplicationStatus) -> dict[str, Any]:
    """A JSON object; its declaration has no secrets."""
    return {**plain(status), "replication": status.replication.to_json()}


def refresh_values(done: ReplicationRefresh) -> dict[str, Any]:
    return {**plain(done), "action": done.action}


def check_values(found: ReplicationCheck) -> dict[str, Any]:
    return {**plain(found), "equal": found.equal}


def show_list(found: Iterable[ReplicationStatus], *, wide: bool) -> None:
    out.print(REPLICATIONS.grid(map(_replication, found), wide=wide))


def _replication(found: ReplicationStatus) -> tuple[str | Text, ...]:
    state = "enabled" if found.enabled else "detached" if found.slot is None else "disabled"
    stopped = [each.name for each in found.tables if not each.is_current]
    error = found.error or ""
    if stopped:
        error = f"{len(stopped)} of {len(found.tables)} tables in trouble: {error}"
    colour = "green" if found.enabled and not found.error else "red" if found.error else "yellow"
    return (found.name, found.replication.publisher.place, str(len(found.tables)),
            color_text(state, colour), moment(found.refreshed_at), str(found.errors or ""),
            error, "; ".join(found.warnings))  # fmt: skip


def show_one(found: ReplicationStatus) -> None:
    declared = found.replication
    settings = {
        name: value
        for name, value in declared.to_json().items()
        if name not in ("name", "publisher", "targets", "schema", "slot", "enabled")
    }
    out.print(
        pairs(
            ("replication", found.name),
            ("from", declared.publisher.place),
            ("publications", ", ".join(declared.publications)),
            ("slot", found.slot or "detached"),
            ("enabled", "yes" if found.enabled else "no"),
            ("refreshed", moment(found.refreshed_at)),
            ("refreshed by", found.worker),
            ("errors in a row", str(found.errors or "")),
            ("error", found.error or ""),
            ("failed", moment(found.failed_at)),
            ("conflicts", _counts(found.conflicts)),
            ("leaves out", ", ".join(found.skips)),
            ("settings", ", ".join(f"{name}={value}" for name, value in settings.items())),
            ("warnings", "; ".join(found.warnings)),
        )
    )
    out.print()
    out.print(TABLES.grid(map(_table, found.tables)))
    for each in found.tables:
        if not each.is_current:
            out.print()
            out.print(
                pairs(
                    ("in trouble", each.name),
                    ("since", moment(each.since)),
                    ("changes kept until", moment(each.kept_until)),
                    ("error", each.error),
                    ("fix", each.fix),
                )
            )


def _table(found: TableStatus) -> tuple[str, ...]:
    position = "" if found.position is None else str(found.position)
    version = "" if found.version is None else count(found.version)
    rows = "" if found.version is None else count(found.rows)
    return (
        found.name, found.target, str(found.state), position, version, rows, found.error,
    )  # fmt: skip


def show_refresh(done: ReplicationRefresh) -> None:
    """A line."""
    left = "" if done.complete else "; there is more"
    skipped = f"; left out: {', '.join(done.skipped)}" if done.skipped else ""
    out.print(f"{done}{skipped}{left}", soft_wrap=True)


def show_check(found: ReplicationCheck) -> None:
    for target, each in sorted(found.tables.items()):
        if each.error:
            out.print(target, color_text("was not compared", "red"), each.error, soft_wrap=True)
            continue
        if each.equal:
            said = color_text("is equal to its origin", "green")
            out.print(
                target,
                said,
                f"at position {each.position}: {amounts.count(each.rows, 'row')}",
                soft_wrap=True,
            )
            continue
        said = color_text("differs from its origin", "yellow" if each.note else "red")
        counts = f"{amounts.count(each.missing, 'row')} missing, {each.unexpected:,} unexpected"
        out.print(target, said, f"at position {each.position}: {counts}", soft_wrap=True)
        if each.note:
            out.print(f"  {each.note}", soft_wrap=True)
        for row in each.sample:
            out.print(f"  {_row(row)}", soft_wrap=True)


def _row(row: Mapping[str, Any]) -> str:
    values = ", ".join(f"{k}={v!r}" for k, v in row.items() if not k.startswith("__"))
    copies = row["__copies"]
    times = f" {copies} times" if copies > 1 else ""
    return f"{row['__difference']}{times}: {values}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {kind}" for kind, number in sorted(counts.items()))
