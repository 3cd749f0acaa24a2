"""`change_asset`: a function that receives the changes of a relation → an asset.

A run reads the changes, calls the function, and moves the slot, in this order.
"""

# No `from __future__ import annotations`: Dagster reads the annotations of ops at run time.
import inspect
import traceback
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal

import dagster as dg

from dagster_streamtables.changes.change_window import Changes, SlotSettings, next_window
from dagster_streamtables.changes.clock.clock import AtLeast
from dagster_streamtables.changes.output.output_options import Envelope, Term
from dagster_streamtables.changes.relation.relation import declare_relation
from dagster_streamtables.changes.subscription import DEADLINE, Time
from dagster_streamtables.compiler import View
from dagster_streamtables.errors import InvalidDefinition, StreamTablesError
from dagster_streamtables.orchestration.assets.assets import RETRIES, op_name
from dagster_streamtables.orchestration.catalog import metadata as keys
from dagster_streamtables.orchestration.catalog.asset_catalog import RESOURCE_KEY
from dagster_streamtables.orchestration.catalog.provenance import DATA_VERSION
from dagster_streamtables.orchestration.catalog.translator import asset_key
from dagster_streamtables.orchestration.changes import feed_metadata
from dagster_streamtables.orchestration.instance.dagster_runs import name_process
from dagster_streamtables.runtime.errors.error_translation import may_pass
from dagster_streamtables.runtime.model.refresh_report import Action
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.setting import Range, check_arguments

if TYPE_CHECKING:
    from dagster_streamtables.runtime.lake import Lake


CHANGES = "changes"
"""The parameter of the function that receives the changes."""
Body = Callable[..., dg.MaterializeResult[Any] | Mapping[str, Any] | None]


@check_arguments
def change_asset(
    *,
    relation: str | StreamTable,
    slot: str | None = None,
    envelope: Envelope | None = None,
    order_by: str | int | Term | Sequence[str | int | Term] = (),
    as_of: Time | AtLeast | None = None,
    snapshot: bool = True,
    clock: Literal["version", "ms"] | None = None,
    max_rows: Annotated[int, Range(1)] | None = None,
    on_history_lost: Literal["error", "resnapshot"] = "error",
    recompute: bool = False,
    dialect: str = "spark",
    session_timezone: str = "UTC",
    views: Sequence[View] = (),
    deadline: Annotated[timedelta, Range(0, above=True)] | None = DEADLINE,
    stored_token: Callable[[], str | None] | None = None,
    name: str | None = None,
    key_prefix: str | Sequence[str] = (),
    source_keys: Mapping[str, dg.AssetKey] | None = None,
    retry_policy: dg.RetryPolicy | None = RETRIES,
    pool: str | None = None,
    resource_key: str = RESOURCE_KEY,
    **spec: Any,
) -> Callable[[Body], dg.AssetsDefinition]:
    """An asset whose function receives what changed, instead of the table.

    A run reads the changes after the position of the asset's slot, up to the newest ones at its
    start, and calls the function with them as ``changes``, a `Changes`. When the function has
    returned, the slot moves behind them. If it fails, the slot stays, and the next run gives the
    same changes and those that came since. If nothing changed, it is not called.

    The function may also have the parameters ``context`` and ``config``, and resources. It returns
    a `dagster.MaterializeResult`, a dictionary of metadata, or nothing.

    Args:
        relation: What is followed, as in `subscribe`: a source, a stream table or a view by its
            name, a path, or a SELECT. The asset depends on the tables that it reads.
        slot: The name of the slot. Default: the asset key, with ``__`` between its parts.
        envelope: `Upsert` or `Debezium`, by a key, in place of the number of copies.
        order_by: The order of rows within a timestamp.
        as_of: Where a new slot begins; by default, with the newest rows.
        snapshot: Whether a new slot begins with all rows as of `as_of`, or after them.
        clock: "version" or "ms", as in `subscribe`.
        max_rows: A run takes no further timestamp once it has so many rows. Timestamps are never
            split, so there may be more. The sensor starts the next run at once.
        on_history_lost: Whether to fail, or begin again with a snapshot, if the slot was released,
            or a vacuum or a clean-up of the log removed what comes next.
        recompute: Whether a query whose change cannot be computed may be run again, and compared.
        dialect: The SQL dialect of a SELECT.
        session_timezone: The time zone of the days and hours of a SELECT, or of a view.
        views: Queries that `relation` may name like tables, or be.
        deadline: The slot is released if nobody, not even the sensor, has used it for so long.
        stored_token: Returns the token that the sink stored last with its rows, or None. Changes
            that the sink has stored are left out; see `Changes.resume_after`.
        name: The name of the asset. Default: the name of the function.
        key_prefix: The first parts of the asset key.
        source_keys: Asset keys of the tables that are read, by their names in the relation.
            `build_definitions` knows those of its stream tables and sources.
        retry_policy: For failures, those of the function included.
        pool: The concurrency pool of the op. Default: one for each asset.
        resource_key: The key of the `StreamTablesResource`.
        spec: Further arguments of `dagster.AssetSpec`, such as `group_name`, `owners`, `tags`,
            `kinds`, `description`, `deps` and `metadata`.

    Raises:
        InvalidDefinition: The function has no parameter ``changes``, or the query is not valid.

    Examples:
        ```python
        @change_asset(relation="mart.revenue", envelope=Upsert("region"))
        def search_index(context, changes: Changes):
            for row in changes.rows.to_pylist():
                context.log.info(f"{row['region']}: {row['_state']}")
        ```
    """

    def asset(body: Body) -> dg.AssetsDefinition:
        prefix = [key_prefix] if isinstance(key_prefix, str) else key_prefix
        key = dg.AssetKey([*prefix, name or body.__name__])
        feed = SlotSettings(
            relation=relation, slot=slot or "__".join(key.path), envelope=envelope,
            order_by=order_by, as_of=as_of, snapshot=snapshot, clock=clock, dialect=dialect,
            on_history_lost=on_history_lost, recompute=recompute, max_rows=max_rows,
            session_timezone=session_timezone, deadline=deadline,
        )  # fmt: skip
        followed = declare_relation(
            feed.relation, dialect=feed.dialect, session_timezone=feed.session_timezone,
            views=views, recompute=feed.recompute,
        )  # fmt: skip
        known = source_keys or {}
        sources = {each: known.get(each) or asset_key(each) for each in followed.sources}
        about = {
            "description": inspect.getdoc(body),
            "kinds": {"python", "deltalake"},
            **spec,
            "deps": [*sources.values(), *spec.get("deps", ())],
            "metadata": {**spec.get("metadata", {}), **feed_metadata.of_asset(feed, sources)},
        }
        made = dg.AssetSpec(key, **about)
        run = _run(body, made, feed, views, stored_token, resource_key)
        op = "_".join("__".join(key.path).split())
        return dg.multi_asset(
            name=op_name(op),
            specs=[made],
            retry_policy=retry_policy,
            pool=pool or f"streamtables/{op}",
        )(run)

    return asset


def _run(
    body: Body,
    spec: dg.AssetSpec,
    feed: SlotSettings,
    views: Sequence[View],
    stored_token: Callable[[], str | None] | None,
    resource_key: str,
) -> Callable[..., Any]:
    """The function of the op: it has the parameters of `body`, except for the changes."""
    named = dict(inspect.signature(body).parameters)
    if named.pop(CHANGES, None) is None:
        raise InvalidDefinition(
            f'the function of the change asset "{spec.key.to_user_string()}" takes no changes',
            why="it receives them as the parameter that is called so",
            fix="declare it as def function(context, changes)",
        )
    wants_context = named.pop("context", None) is not None

    def run(context: Any, **given: Any) -> dg.MaterializeResult[Any]:
        lake = given[resource_key].lake(views)
        known = {name: value for name, value in given.items() if name in named}
        known |= {"context": context} if wants_context else {}

        def call(changes: Any) -> Any:
            return body(**known, **{CHANGES: changes})

        return run_once(context, lake, spec, feed, call, stored_token)

    named = {name: _resolve_annotation(each, body) for name, each in named.items()}
    first = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    # Dagster takes resources as parameters or as keys, not as both.
    ours = inspect.Parameter(
        resource_key, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=dg.ResourceParam[Any]
    )
    taken = {resource_key: ours, **named}
    run.__signature__ = inspect.Signature([first, *taken.values()])  # type: ignore[attr-defined]
    run.__annotations__ = {name: each.annotation for name, each in taken.items()}
    return run


def _resolve_annotation(parameter: inspect.Parameter, body: Body) -> inspect.Parameter:
    """A parameter whose annotation is the type, if it is text: Dagster looks for it elsewhere.
    Raises `InvalidDefinition` if there is no such name in the module of the function."""
    if not isinstance(parameter.annotation, str):
        return parameter
    try:
        kind = eval(parameter.annotation, inspect.unwrap(body).__globals__)
    except NameError as error:
        raise InvalidDefinition(
            f'the type of the parameter "{parameter.name}" is not known: {parameter.annotation}',
            why=str(error),
            fix="import or define it at the top of the module, not for type checkers alone",
        ) from error
    return parameter.replace(annotation=kind)


def run_once(
    context: dg.AssetExecutionContext,
    lake: "Lake",
    spec: dg.AssetSpec,
    feed: SlotSettings,
    call: Callable[[Changes], Any],
    stored_token: Callable[[], str | None] | None,
) -> dg.MaterializeResult[Any]:
    """Give the function what changed, and acknowledge it once the function has returned. Raises
    `dg.Failure` if the changes cannot be read, or not be acknowledged, with what, why and fix."""
    name_process(context)
    token = None if stored_token is None else stored_token()
    try:
        with next_window(lake, feed) as (changes, subscription):
            changes.resume_after(token)
            found = _call_function(changes, call) if len(changes) else dg.MaterializeResult()
            seen = feed_metadata.of_changes(changes)
            subscription.ack()
    except StreamTablesError as error:
        context.log.debug("".join(traceback.format_exception(error)))
        raise keys.failure(
            error.about(spec.key.to_user_string()), allow_retries=may_pass(error)
        ) from None
    moved = bool(seen[keys.ROWS_IN])
    action = {} if moved else {keys.ACTION: str(Action.NO_DATA)}
    version = found.data_version or _version(context, spec.key, seen, moved=moved)
    lag = keys.read_or_warn(
        lambda: feed_metadata.of_slot(lake.retention.slot(feed.slot)),
        f"the lag of {feed.slot} is",
        context.log.warning,
    )
    return found._replace(
        asset_key=spec.key,
        data_version=version,
        metadata={**action, **seen, **lag, **(found.metadata or {})},
    )


def _call_function(changes: Changes, call: Callable[[Changes], Any]) -> dg.MaterializeResult[Any]:
    returned = call(changes)
    if returned is None:
        return dg.MaterializeResult()
    if isinstance(returned, dg.MaterializeResult):
        return returned
    if isinstance(returned, Mapping):
        return dg.MaterializeResult(metadata=returned)
    raise InvalidDefinition(
        f"the function of a change asset returned a value of the type {type(returned).__name__}",
        why="its slot stays where it was, since what was returned would be lost",
        fix="return a MaterializeResult, a dictionary of metadata, or nothing",
    )


def _version(
    context: dg.AssetExecutionContext, key: dg.AssetKey, seen: Mapping[str, Any], *, moved: bool
) -> dg.DataVersion:
    """The last timestamp that moved rows: an unchanged data version starts nothing downstream."""
    event = context.instance.get_latest_materialization_event(key)
    before = event.asset_materialization if event is not None else None
    known = None if before is None else (before.tags or {}).get(DATA_VERSION)
    return dg.DataVersion(str(seen[feed_metadata.TO]) if moved or known is None else known)
