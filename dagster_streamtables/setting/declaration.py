"""The settings that a class declares: names, types, constraints, defaults, descriptions.

A description is the text below the field, which editors and the API reference also show.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import functools
import inspect
import textwrap
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass
from itertools import pairwise
from typing import Annotated, Any

from dagster_streamtables.setting.values import INTERNAL, Display, hints_of, plain


@dataclass(frozen=True)
class Setting:
    """A field that users may set."""

    owner: type
    name: str
    hint: Any
    """The annotation."""
    default: Any = MISSING

    @property
    def is_mandatory(self) -> bool:
        return self.default is MISSING

    @property
    def display(self) -> Display:
        """How editors and the documentation show it."""
        marks = typing.get_args(self.hint)
        return next((mark for mark in marks if isinstance(mark, Display)), Display())

    @property
    def description(self) -> str:
        """The text below the field; for an enum, with the texts of its members."""
        kind = plain(self.hint)
        is_choice = isinstance(kind, type) and issubclass(kind, enum.StrEnum)
        texts = _field_texts(kind) if is_choice else {}
        members: Any = kind if is_choice else ()
        choices = [f"`{each.value}`: {texts.get(each.name, '')}" for each in members]
        fields: Mapping[str, Any] = getattr(self.owner, "model_fields", {})
        of_model = getattr(fields.get(self.name), "description", None) or ""
        said = _field_texts(self.owner).get(self.name, "") or of_model
        return " ".join([said, *choices]).strip()


def settings_of(owner: type) -> tuple[Setting, ...]:
    """The settings of a dataclass, or of a pydantic model, in the order of its fields."""
    return tuple(each for each in _fields(owner) if INTERNAL not in typing.get_args(each.hint))


def missing_descriptions(owner: type) -> list[str]:
    """The settings of a class without a text below their fields."""
    return [f"{owner.__name__}.{s.name}" for s in settings_of(owner) if not s.description]


@functools.cache
def _fields(owner: type) -> tuple[Setting, ...]:
    if not dataclasses.is_dataclass(owner):
        fields: Mapping[str, Any] = getattr(owner, "model_fields", {})
        return tuple(_of_model(owner, name, each) for name, each in fields.items())
    hints = hints_of(owner)
    return tuple(
        Setting(owner, field.name, hints[field.name], _default(field))
        for field in dataclasses.fields(owner)
    )


def _of_model(owner: Any, name: str, field: Any) -> Setting:
    """A field of a pydantic model, which stores the constraints apart from the annotation."""
    default = MISSING if field.is_required() else field.get_default(call_default_factory=True)
    return Setting(owner, name, Annotated[field.annotation, None, *field.metadata], default)


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


@functools.cache
def _field_texts(owner: type) -> Mapping[str, str]:
    """The texts below the fields of a class, read from its source because Python drops them; none
    if there is no source."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(owner)))
    except (OSError, SyntaxError):
        return {}
    [definition] = tree.body
    body = typing.cast(ast.ClassDef, definition).body
    return {name: " ".join(text.split()) for name, text in _texts(body)}


def _texts(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for pair in pairwise(body):
        match pair:
            case (
                ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, text
