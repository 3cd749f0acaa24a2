"""`resource` in YAML → `StreamTablesResource`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg

from dagster_streamtables.components.place import folder_of
from dagster_streamtables.components.yaml_settings import read, yaml_model, yaml_values
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.orchestration.assets.resource import StreamTablesResource

if TYPE_CHECKING:
    Resource = StreamTablesResource
else:
    # At run time Dagster requires that YAML can express each field of the type, even if a resolver
    # makes the value; it cannot express a resource of dagster-pyspark.
    Resource = Any

_VARIABLE = re.compile(r"\s*\{\{\s*env\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}\s*")
_WITH_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")

# Other resources can only be given in Python, and storage options are read when needed.
_ELSEWHERE = ("pyspark", "storage_options")
ResourceModel = yaml_model(StreamTablesResource, leave_out=("pyspark",))


def resolve_resource(context: dg.ResolutionContext, model: Any) -> StreamTablesResource:
    """
    Raises:
        InvalidDefinition: There is no root, for example because its variable is not set.
    """
    options = dict(model.storage_options or {})
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
    settings["root"] = _absolute(str(settings["root"]), folder_of(_load_context(context)))
    options = _options(context.at_path("storage_options"), options)
    return StreamTablesResource(**settings, storage_options=options)


def _load_context(context: dg.ResolutionContext) -> dg.ComponentLoadContext:
    return dg.ComponentLoadContext.from_resolution_context(context)  # type: ignore[return-value]


def _absolute(root: str, here: Path) -> str:
    return root if _WITH_SCHEME.match(root) else str(here / Path(root).expanduser())


def _options(context: dg.ResolutionContext, options: dict[str, Any]) -> dict[str, Any]:
    """Storage options. Secrets stay names of variables, because the UI shows their values."""
    found: dict[str, Any] = {}
    for key, text in options.items():
        variable = _VARIABLE.fullmatch(text) if isinstance(text, str) else None
        if variable is None:
            value = context.at_path(key).resolve_value(text)
            found |= {key: str(value)} if value is not None else {}
        elif dg.EnvVar(variable[1]).get_value():
            found[key] = dg.EnvVar(variable[1])
    return found
