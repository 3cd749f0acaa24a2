"""The parts of a component's YAML: resource, tables, views, ops, executor, change assets."""

from __future__ import annotations

import importlib
import linecache
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import dagster as dg

from dagster_streamtables.changes.output.output_options import ENVELOPES
from dagster_streamtables.changes.subscription import DEADLINE
from dagster_streamtables.compiler import View
from dagster_streamtables.components.component_tree import folder_of
from dagster_streamtables.components.yaml_settings import (
    list_resolver,
    read,
    yaml_model,
    yaml_values,
)
from dagster_streamtables.declare.sql_files import BrokenTable, Declared, declare
from dagster_streamtables.errors import InvalidDefinition, QueryPosition, StreamTablesError
from dagster_streamtables.orchestration.assets.assets import RETRIES
from dagster_streamtables.orchestration.assets.streamtables_resource import StreamTablesResource
from dagster_streamtables.orchestration.assets.thread_executor import threads_executor
from dagster_streamtables.orchestration.changes.change_asset import change_asset
from dagster_streamtables.runtime.model.stream_table import StreamTable
from dagster_streamtables.setting import NON_EMPTY, Display, Range, normalize_fields

if TYPE_CHECKING:
    Resource = StreamTablesResource
else:
    # At run time Dagster requires that YAML can express each field of the type, even if a resolver
    # makes the value; it cannot express a resource of dagster-pyspark.
    Resource = Any


_VARIABLE = re.compile(r"\s*\{\{\s*env\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}\s*")
_WITH_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")

# Other resources can only be given in Python, and secrets are read when needed.
_ELSEWHERE = ("pyspark", "storage_options", "catalog_token")
ResourceModel = yaml_model(StreamTablesResource, leave_out=("pyspark",))


def resolve_resource(context: dg.ResolutionContext, model: Any) -> StreamTablesResource:
    """Raises `InvalidDefinition` if there is no root, for example because its variable is not
    set."""
    options = dict(model.storage_options or {})
    token = {"catalog_token": model.catalog_token} if model.catalog_token else {}
    said = yaml_values(context, StreamTablesResource, model, leave_out=_ELSEWHERE)
    # An environment variable that is not set is empty here.
    given = {name: value for name, value in said.items() if value not in (None, "")}
    settings = read(StreamTablesResource, given)
    if "root" not in settings:
        raise InvalidDefinition(
            "resource.root is empty",
            where=f"root: {model.root}",
            fix="give a folder or a URI; if it is an environment variable, set it",
        )
    component: Any = dg.ComponentLoadContext.from_resolution_context(context)
    here, root = folder_of(component), str(settings["root"])
    settings["root"] = root if _WITH_SCHEME.match(root) else str(here / Path(root).expanduser())
    options = _secrets(context.at_path("storage_options"), options)
    return StreamTablesResource(**settings, **_secrets(context, token), storage_options=options)


def _secrets(context: dg.ResolutionContext, given: dict[str, Any]) -> dict[str, Any]:
    """The values. Secrets stay names of variables, because the UI shows values."""
    found: dict[str, Any] = {}
    for key, text in given.items():
        variable = _VARIABLE.fullmatch(text) if isinstance(text, str) else None
        if variable is None:
            value = context.at_path(key).resolve_value(text)
            found |= {key: str(value)} if value is not None else {}
        elif dg.EnvVar(variable[1]).get_value():
            found[key] = dg.EnvVar(variable[1])
    return found


TableModel = yaml_model(StreamTable)
ViewModel = yaml_model(View)


def resolve_tables(context: dg.ResolutionContext, models: Sequence[Any]) -> list[Declared]:
    """The declared tables, each with the line of the YAML on which its query begins. An invalid
    declaration becomes a `BrokenTable`, so that the others can be used."""
    return [_table(context.at_path(place), model) for place, model in enumerate(models)]


def resolve_views(context: dg.ResolutionContext, models: Sequence[Any]) -> list[View]:
    """Raises `InvalidDefinition` if a view is invalid, which would change the tables that read
    it."""
    return [_view(context.at_path(place), model) for place, model in enumerate(models)]


def _table(context: dg.ResolutionContext, model: Any) -> Declared:
    said = yaml_values(context, StreamTable, model)
    file, line = _place(context, "query")
    name, query = str(said.pop("name")), str(said.pop("query"))
    try:
        settings = read(StreamTable, said)
    except StreamTablesError as error:
        error = error.with_parts(where=QueryPosition(line, 1, file=file)) if file else error
        return BrokenTable(name, error.about(name), query, file, line)
    return declare(name, query, **settings, file=file, line=line)


def _view(context: dg.ResolutionContext, model: Any) -> View:
    file, line = _place(context, "query")
    return View(**yaml_values(context, View, model), file=file, line=line)


def _place(context: dg.ResolutionContext, key: str) -> tuple[str | None, int]:
    tree = context.source_position_tree
    if tree is None:
        return None, 1
    position, _ = tree.lookup_closest_and_path([*context.path, key], None)
    file, line = position.filename, position.start.line
    # A block after `query: |` begins on the next line.
    is_block = re.search(rf"\b{key}:\s*[|>]", linecache.getline(file, line)) is not None
    return file, line + is_block


ExecutorName = Literal["threads", "in_process", "multiprocess", "code_location"]


@dataclass
class OpSettings:
    """The ops that refresh the tables."""

    pool: Annotated[str | None, Display(default="one for each table")] = None
    """The concurrency pool of the ops."""
    tags: Annotated[Mapping[str, str], Display(({"dagster/priority": "3"},))] = field(
        default_factory=dict[str, str]
    )
    """The tags of the ops, for example for an executor's resource limits."""
    max_retries: Annotated[int, Range(0)] = RETRIES.max_retries
    """How often a transient error is retried. Errors that need a person are not retried."""
    retry_delay_seconds: Annotated[float, Range(0)] = 1.0
    """The approximate delay before the first retry. It doubles with each retry."""

    def __post_init__(self) -> None:
        normalize_fields(self)

    @property
    def retry_policy(self) -> dg.RetryPolicy | None:
        """The retry policy for Dagster; None for no retries."""
        if self.max_retries == 0:
            return None
        return dg.RetryPolicy(
            max_retries=self.max_retries,
            delay=self.retry_delay_seconds,
            backoff=RETRIES.backoff,
            jitter=RETRIES.jitter,
        )


def executor_of(name: ExecutorName, at_once: int) -> dg.ExecutorDefinition | None:
    """The executor of scheduled refreshes, for `at_once` tables at the same time; None for the
    executor of the code location. Raises `InvalidDefinition` if there is no such executor."""
    known = {
        "threads": threads_executor,
        "in_process": dg.in_process_executor,
        "multiprocess": dg.multiprocess_executor.configured({"max_concurrent": at_once}),
        "code_location": None,
    }
    if name not in known:
        raise InvalidDefinition(
            f'there is no executor "{name}"',
            fix="write threads, in_process, multiprocess or code_location",
        )
    return known[name]


@dataclass(frozen=True)
class ChangeAssetSettings:
    """A function that receives what changed in a relation, as an asset."""

    function: Annotated[str, NON_EMPTY, Display(("project.sinks.search_index",))]
    """The function, by its module and name. It has a parameter `changes`."""
    relation: Annotated[str, NON_EMPTY, Display(("mart.revenue",))]
    """What is followed: a source, a stream table or a view by its name, a path, or a SELECT."""
    key: Annotated[tuple[str, ...], Display((("id",),))] = ()
    """The columns of the envelope's key."""
    envelope: Literal["upsert", "debezium"] | None = None
    """The shape of the rows. With a `key`, the default is `upsert`; without one, each row has the
    number of copies that were inserted or deleted."""
    order_by: Annotated[tuple[str, ...], Display((("id",),))] = ()
    """The order of rows within a timestamp."""
    slot: Annotated[str | None, Display(default="the asset key, with __ between its parts")] = None
    """The name of the slot."""
    as_of: Annotated[str | None, Display(("2026-01-31T12:00:00Z",), default="now")] = None
    """Where a new slot begins."""
    snapshot: bool = True
    """Whether a new slot begins with all rows as of `as_of`, or after them."""
    clock: Literal["version", "ms"] | None = None
    """What timestamps count: the versions of the only source, or milliseconds."""
    max_rows: Annotated[int, Range(1)] | None = None
    """A run takes no further timestamp once it has this number of rows."""
    on_history_lost: Literal["error", "resnapshot"] = "error"
    """Whether to fail, or begin again with a snapshot, if what comes next can no longer be read."""
    recompute: bool = False
    """Whether a query whose change cannot be computed may be run again, and compared."""
    dialect: str = "spark"
    """The SQL dialect of a SELECT."""
    session_timezone: str = "UTC"
    """The time zone of the days and hours of a SELECT, or of a view."""
    deadline: Annotated[timedelta, Range(0, above=True)] | None = DEADLINE
    """The slot is dropped if neither a run nor the sensor has used it for this time."""
    stored_token: Annotated[str | None, Display(("project.sinks.last_token",))] = None
    """A function that returns the token that the sink stored last with its rows, or None."""
    name: Annotated[str | None, Display(default="the name of the function")] = None
    """The name of the asset."""
    key_prefix: Annotated[tuple[str, ...], Display((("search",),))] = ()
    """The first parts of the asset key."""
    group_name: str | None = None
    """The group of the asset."""
    description: Annotated[str | None, Display(default="the docstring of the function")] = None
    """What Dagster shows."""

    def __post_init__(self) -> None:
        normalize_fields(self)
        if self.envelope is not None and not self.key:
            raise InvalidDefinition(
                f'the envelope "{self.envelope}" of {self.function} has no key',
                fix="name its columns, as in key: [id]",
            )

    def asset(self, resource_key: str, views: Sequence[View]) -> dg.AssetsDefinition:
        """The asset, with the imported function; `relation` may be one of the views, or name it.
        Raises `InvalidDefinition` if there is no such function, or it cannot be imported."""
        taken = ("function", "key", "envelope", "stored_token", "description")
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        said = {name: value for name, value in given.items() if name not in taken}
        if self.key:
            said["envelope"] = ENVELOPES[self.envelope or "upsert"](self.key)
        if self.stored_token is not None:
            said["stored_token"] = _import_function(self.stored_token)
        if self.description is not None:
            said["description"] = self.description
        made = change_asset(**said, views=views, resource_key=resource_key)
        return made(_import_function(self.function))


def _import_function(path: str) -> Callable[..., Any]:
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidDefinition(
            f"the function {path} cannot be imported",
            why=str(error),
            fix="write the module and the name of the function, as in project.sinks.search_index",
        ) from error


CHANGE_ASSETS = list_resolver(
    ChangeAssetSettings, "Functions of the project that receive what changed, as assets."
)
