"""Owners, tags and group: labels of a stream table for people, ignored by refreshes.

The rules are those of Dagster's assets, so that a mistake is found in its declaration.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from dagster_streamtables.errors import InvalidDefinition

_PART = r"[A-Za-z0-9_.-]{1,63}"
_TAG_KEY = re.compile(rf"({_PART}/|dagster/kind/)?{_PART}")
_TAG_VALUE = re.compile(r"[A-Za-z0-9_.-]{0,63}")
_EMAIL = re.compile(r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z|]{2,7}\b")
_GROUP = re.compile(r"[A-Za-z0-9_]+(/[A-Za-z0-9_]+)*")


def checked_owners(owners: Iterable[str]) -> tuple[str, ...]:
    """
    Raises:
        InvalidDefinition: One is neither an e-mail address nor a team.
    """
    found = tuple(owners)
    for owner in found:
        if not (_EMAIL.fullmatch(owner) or (owner.startswith("team:") and len(owner) > 5)):
            raise InvalidDefinition(
                f'"{owner}" is no owner',
                why="an owner is an e-mail address, or a team",
                fix=f"write an address, or team:{_word(owner) or 'finance'}",
            )
    return found


def checked_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """
    Raises:
        InvalidDefinition: A key or a value has invalid characters, or too many.
    """
    found = {str(key): str(value) for key, value in tags.items()}
    for key, value in found.items():
        if not _TAG_KEY.fullmatch(key):
            raise _tag(
                f'"{key}" is no key of a tag',
                "up to 63 letters, digits and _ . -, after a namespace and a slash if need be",
            )
        if not _TAG_VALUE.fullmatch(value):
            raise _tag(
                f'"{value}" is no value of the tag "{key}"', "up to 63 letters, digits and _ . -"
            )
    return found


def checked_group(group: str) -> str:
    """
    Raises:
        InvalidDefinition: It has invalid characters.
    """
    if group and not _GROUP.fullmatch(group):
        raise InvalidDefinition(
            f'"{group}" is no name for a group',
            why="a group is letters, digits and underscores; slashes make groups in groups",
            fix=f"write {_word(group) or 'finance'}",
        )
    return group


def _tag(what: str, why: str) -> InvalidDefinition:
    return InvalidDefinition(what, why=f"it may have {why}", fix="write such as tier=gold")


def _word(text: str) -> str:
    return "_".join(re.findall(r"[A-Za-z0-9]+", text))
