"""Replications as tables, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dagster_streamtables.cli.output import coloured, count, grid, moment, out, pairs, plain
from dagster_streamtables.replication.lifecycle.check import ReplicationCheck
from dagster_streamtables.replication.lifecycle.report import ReplicationRefresh
from dagster_streamtables.replication.lifecycle.status import ReplicationStatus


def status_values(status: ReplicationStatus) -> dict[str, Any]:
    """A JSON object; its declaration has no secrets."""
    return {**plain(status), "replication": status.replication.to_json()}


def refresh_values(done: ReplicationRefresh) -> dict[str, Any]:
    return {**plain(done), "action": done.action}


def check_values(found: ReplicationCheck) -> dict[str, Any]:
    return {**plain(found), "equal": found.equal}


def show_list(found: Iterable[ReplicationStatus]) -> None:
    shown = grid("name", "from", "tables", "state", "refreshed", "errors", "error")
    for each in found:
        state = "enabled" if each.enabled else "detached" if each.slot is None else "disabled"
        colour = "green" if each.enabled and not each.error else "red" if each.error else "yellow"
        shown.add_row(
            each.name, each.replication.publisher.place, str(len(each.tables)),
            coloured(state, colour), moment(each.refreshed_at), str(each.errors or ""),
            each.error or "",
        )  # fmt: skip
    out.print(shown)
    for each in found:
        for warning in each.warnings:
            out.print(f"{each.name}: {warning}", soft_wrap=True)


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
    numbers = ("position", "version", "rows")
    shown = grid("table", "target", "state", *numbers, "error", right=numbers)
    for each in found.tables:
        position = "" if each.position is None else str(each.position)
        version = "" if each.version is None else count(each.version)
        rows = "" if each.version is None else count(each.rows)
        shown.add_row(each.name, each.target, str(each.state), position, version, rows, each.error)
    out.print(shown)


def show_refresh(done: ReplicationRefresh) -> None:
    """A line."""
    left = "" if done.complete else "; there is more"
    skipped = f"; left out: {', '.join(done.skipped)}" if done.skipped else ""
    out.print(f"{done}{skipped}{left}", soft_wrap=True)


def show_check(found: ReplicationCheck) -> None:
    for target, each in sorted(found.tables.items()):
        if each.equal:
            said = coloured("is equal to its origin", "green")
            out.print(
                target, said, f"at position {each.position}: {each.rows:,} rows", soft_wrap=True
            )
            continue
        said = coloured("differs from its origin", "yellow" if each.note else "red")
        counts = f"{each.missing:,} rows missing, {each.unexpected:,} unexpected"
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
