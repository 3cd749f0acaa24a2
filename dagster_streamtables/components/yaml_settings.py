"""The settings of a class in YAML: durations as texts, tuples as lists."""

# No `from __future__ import annotations`: Dagster reads the annotations of fields at run time.
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, make_dataclass
from datetime import timedelta
from typing import Annotated, Any, TypeVar

import dagster as dg
from pydantic import BaseModel

from dagster_streamtables.declare.schedule import UNITS, Duration, parse_schedule
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.setting import Setting, allows_none, plain, read_text, settings_of

T = TypeVar("T")

_TAGS = dict[str, str | int | float | bool] | None


def yaml_model(owner: type, *, leave_out: Sequence[str] = ()) -> type[BaseModel]:
    """A model of the settings in YAML, with the descriptions, examples and defaults of the class,
    but for settings that YAML cannot express."""
    fields = [
        (each.name, _annotation(each), _default(each))
        for each in settings_of(owner)
        if each.name not in leave_out
    ]
    # Dagster builds the model, so that each value may also be a template.
    made = make_dataclass(
        f"{owner.__name__}Fields",
        fields,
        bases=(dg.Resolvable,),
        namespace={"__doc__": owner.__doc__},
        kw_only=True,
    )
    return typing.cast(type[dg.Resolvable], made).model()


def resolver(owner: type, description: str) -> dg.Resolver:
    """A resolver that builds an object of a class with settings from YAML; `description` is that of
    the field."""

    return dg.Resolver(
        lambda context, model: from_yaml(context, owner, model),
        model_field_type=yaml_model(owner),
        description=description,
    )


def list_resolver(
    owner: type[T], description: str, convert: Callable[[T], Any] = lambda each: each
) -> dg.Resolver:
    """As `resolver`, for a list of objects, each of which a function may convert."""

    def resolve(context: dg.ResolutionContext, models: Sequence[Any]) -> list[Any]:
        return [
            convert(from_yaml(context.at_path(place), owner, model))
            for place, model in enumerate(models)
        ]

    return dg.Resolver(
        resolve,
        model_field_type=Sequence[yaml_model(owner)],  # type: ignore[misc]
        description=description,
    )


def from_yaml(context: dg.ResolutionContext, owner: type[T], model: Any) -> T:
    return owner(**read(owner, yaml_values(context, owner, model)))


def yaml_values(
    context: dg.ResolutionContext, owner: type, model: Any, *, leave_out: Sequence[str] = ()
) -> dict[str, Any]:
    """The settings given in YAML, with templates filled in, but for those to leave out. For a
    setting that cannot be None, null counts as not given."""
    said: Mapping[str, Any] = model.model_dump(exclude_unset=True)
    found: dict[str, Any] = {}
    for each in settings_of(owner):
        if each.name in said and each.name not in leave_out:
            value = context.at_path(each.name).resolve_value(said[each.name])
            if value is not None or allows_none(each.hint):
                found[each.name] = value
    return found


def read(owner: type, said: Mapping[str, Any]) -> dict[str, Any]:
    """Values from YAML, converted to the types of their settings, for the constructor of the class.
    Raises `InvalidDefinition` if a text is not a valid value."""
    settings = {each.name: each for each in settings_of(owner)}
    return {name: _read(settings[name], value) for name, value in said.items()}


def _read(setting: Setting, value: Any) -> Any:
    kind = plain(setting.hint)
    if _is_mapping(kind) and isinstance(value, Mapping):
        pairs: Mapping[Any, Any] = value
        return {key: str(each) for key, each in pairs.items()}
    if not isinstance(value, str):
        return value
    if kind is timedelta:
        return _span(setting.name, value)
    return read_text(setting.name, setting.hint, value)


def _annotation(setting: Setting) -> Any:
    shown = setting.display.examples
    examples = [list(each) if isinstance(each, tuple) else each for each in shown]
    about = dg.Resolver.default(description=setting.description, examples=examples)
    kind = _type(plain(setting.hint))
    return Annotated[kind | None if allows_none(setting.hint) else kind, about]


def _type(kind: Any) -> Any:
    if _is_mapping(kind):
        return _TAGS
    if typing.get_origin(kind) is tuple:
        return Sequence[typing.get_args(kind)[0]]
    return str if kind is timedelta else kind


def _is_mapping(kind: Any) -> bool:
    origin = typing.get_origin(kind)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _default(setting: Setting) -> Any:
    if setting.is_mandatory:
        return field()
    if isinstance(setting.default, timedelta):
        return field(default=duration_text(setting.default))
    # A mutable default is not allowed, and YAML need not give an empty mapping.
    return field(default=None if _is_mapping(plain(setting.hint)) else setting.default)


def duration_text(span: timedelta) -> str:
    """
    >>> duration_text(timedelta(hours=1)), duration_text(timedelta(minutes=90))
    ('1h', '90m')
    """
    seconds = int(span.total_seconds())
    units = [(unit, size) for unit, size in UNITS.items() if unit != "w" and seconds % size == 0]
    unit, size = units[-1] if seconds else ("s", 1)
    return f"{seconds // size}{unit}"


def _span(name: str, text: str) -> timedelta:
    if text.strip() == duration_text(timedelta()):
        return timedelta()
    found = parse_schedule(text, min_schedule_seconds=0)
    if not isinstance(found, Duration):
        raise InvalidDefinition(f'{name} is "{text}"', fix="write a duration, such as 30s or 1h30m")
    return timedelta(seconds=found.seconds)
