"""The public names of the package: each is documented, on the page of the API, and typed."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import griffe
import pytest

import dagster_streamtables
from pages import DOCS, PROJECT

API = DOCS / "api.md"


def undocumented(package: ModuleType, folder: Path) -> list[str]:
    """The public names, and the public methods of public classes, that lack a docstring.

    Names are read from the source: at run time a dataclass has a docstring that nobody wrote.
    A method may have the docstring of the method that it overrides.
    """
    source = griffe.load(package.__name__, search_paths=[folder], resolve_aliases=True)
    found: list[str] = []
    for name in package.__all__:
        documented = source[name].docstring is not None
        found += [] if documented else [name]
        value = getattr(package, name)
        found += [f"{name}.{method}" for method in _methods(value) if not _doc(value, method)]
    return found


def _methods(value: Any) -> list[str]:
    """Those that the class itself defines."""
    if not isinstance(value, type):
        return []
    public = {name: each for name, each in vars(value).items() if not name.startswith("_")}
    kinds = (staticmethod, classmethod, property)
    return [n for n, each in public.items() if inspect.isfunction(each) or isinstance(each, kinds)]


def _doc(value: type, method: str) -> str | None:
    return inspect.getdoc(inspect.getattr_static(value, method))


def test_every_public_name_has_a_docstring() -> None:
    missing = undocumented(dagster_streamtables, PROJECT)
    assert not missing, (
        f"public, and without a docstring: {', '.join(missing)}. Write one where it is defined: a "
        "sentence on what it is or returns; or take the name out of dagster_streamtables.__all__"
    )


def test_a_public_name_without_a_docstring_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "unwritten.py").write_text(
        "from dataclasses import dataclass\n"
        "__all__ = ['Bare', 'Told', 'bare', 'told']\n"
        "@dataclass\n"
        "class Bare:\n"
        "    x: int\n"
        "class Told:\n"
        "    '''Said.'''\n"
        "    def silent(self): ...\n"
        "    def _own(self): ...\n"
        "    def clear(self):\n"
        "        '''Said.'''\n"
        "def bare(): ...\n"
        "def told():\n"
        "    '''Said.'''\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import unwritten  # pyright: ignore[reportMissingImports]

    assert undocumented(unwritten, tmp_path) == ["Bare", "Told.silent", "bare"]


def test_the_page_of_the_api_has_every_public_name_once() -> None:
    shown = re.findall(r"^::: dagster_streamtables\.(\w+)$", API.read_text(), flags=re.M)
    public = dagster_streamtables.__all__
    lacking = sorted(set(public) - set(shown))
    assert not lacking, (
        f"docs/api.md lacks {', '.join(lacking)}: write `::: dagster_streamtables.{lacking[0]}` "
        "into the section where it belongs"
    )
    assert sorted(shown) == sorted(public), "docs/api.md has a name twice, or one that is not there"
