"""Stream tables and views declared in YAML."""

from __future__ import annotations

import linecache
import re
from collections.abc import Sequence
from typing import Any

import dagster as dg

from dagster_streamtables.compiler import View
from dagster_streamtables.components.yaml_settings import read, yaml_model, yaml_values
from dagster_streamtables.declare.load import BrokenTable, Declared, declare
from dagster_streamtables.errors import QueryPosition, StreamTablesError
from dagster_streamtables.runtime.model.stream_table import StreamTable

TableModel = yaml_model(StreamTable)
ViewModel = yaml_model(View)


def resolve_tables(context: dg.ResolutionContext, models: Sequence[Any]) -> list[Declared]:
    """The declared tables, each with the line of the YAML on which its query begins. An invalid
    declaration becomes a `BrokenTable`, so that the others can be used."""
    return [_table(context.at_path(place), model) for place, model in enumerate(models)]


def resolve_views(context: dg.ResolutionContext, models: Sequence[Any]) -> list[View]:
    """
    Raises:
        InvalidDefinition: A view is invalid, which would change the tables that read it.
    """
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
