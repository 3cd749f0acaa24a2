"""The public names of the package: each is documented, on the page of the API, and typed."""

from __future__ import annotations

import importlib
import inspect
import re
from collections import Counter
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import griffe
import pytest

import dagster_streamtables
from own_process import python
from pages import DOCS, PROJECT

API = DOCS / "api.md"
ROOT = dagster_streamtables.__name__
PUBLIC = (ROOT, *(f"{ROOT}.{each}" for each in dagster_streamtables.SUBMODULES))


def undocumented(module: ModuleType, folder: Path) -> list[str]:
    """The public names, and the public methods of public classes, that lack a docstring.

    Names are read from the source: at run time a dataclass has a docstring that nobody wrote.
    A method may have the docstring of the method that it overrides.
    """
    package, _, path = module.__name__.partition(".")
    source = _source(package, folder)
    found: list[str] = []
    for name in module.__all__:
        documented = source[f"{path}.{name}".removeprefix(".")].docstring is not None
        found += [] if documented else [name]
        value = getattr(module, name)
        found += [f"{name}.{method}" for method in _methods(value) if not _doc(value, method)]
    return found


@cache
def _source(package: str, folder: Path) -> Any:
    return griffe.load(package, search_paths=[folder], resolve_aliases=True)


def _methods(value: Any) -> list[str]:
    """Those that the class itself defines."""
    if not isinstance(value, type):
        return []
    public = {name: each for name, each in vars(value).items() if not name.startswith("_")}
    kinds = (staticmethod, classmethod, property)
    return [n for n, each in public.items() if inspect.isfunction(each) or isinstance(each, kinds)]


def _doc(value: type, method: str) -> str | None:
    return inspect.getdoc(inspect.getattr_static(value, method))


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_has_a_docstring(module: str) -> None:
    missing = undocumented(importlib.import_module(module), PROJECT)
    assert not missing, (
        f"public, and without a docstring: {', '.join(missing)}. Write one where it is defined: a "
        f"sentence on what it is or returns; or take the name out of {module}.__all__"
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


def test_the_root_has_few_names_and_each_name_one_home() -> None:
    homes = Counter(name for each in PUBLIC for name in importlib.import_module(each).__all__)

    assert len(dagster_streamtables.__all__) <= 60, "put the name into a submodule: SUBMODULES"
    twice = {name for name, count in homes.items() if count > 1}
    assert twice == {"StreamTablesError"}, "the base of all errors alone is in the root as well"


def test_the_page_of_the_api_has_every_public_name_once() -> None:
    shown = re.findall(rf"^::: ({ROOT}[\w.]+)$", API.read_text(), flags=re.M)
    public = {f"{each}.{name}" for each in PUBLIC for name in importlib.import_module(each).__all__}
    public.remove(f"{ROOT}.errors.StreamTablesError")
    lacking = sorted(public - set(shown))
    assert not lacking, (
        f"docs/api.md lacks {', '.join(lacking)}: write `::: {lacking[0]}` into the section where "
        "it belongs"
    )
    assert sorted(shown) == sorted(public), "docs/api.md has a name twice, or one that is not there"


@pytest.mark.parametrize("module", PUBLIC[1:])
def test_an_import_of_a_submodules_name_from_the_root_is_told_where_it_is(module: str) -> None:
    names = {*importlib.import_module(module).__all__} - {"StreamTablesError", "declare"}

    for name in names:
        with pytest.raises(ImportError, match=rf"from {module} import {name}$"):
            exec(f"from {ROOT} import {name}")
        with pytest.raises(ImportError, match=rf"from {module} import {name}$"):
            getattr(dagster_streamtables, name)


def test_a_name_that_nobody_has_is_missing_as_in_any_module() -> None:
    assert not hasattr(dagster_streamtables, "find_problem")
    with pytest.raises(ImportError, match="cannot import name 'find_problem'"):
        exec(f"from {ROOT} import find_problem")


def test_importing_the_root_or_a_module_of_it_by_name_loads_no_layer() -> None:
    """An import of a module from a package first looks for an attribute of its name."""
    program = (
        f"import sys, {ROOT}; from {ROOT} import amounts, errors, replication, changes\n"
        "print({'dagster', 'pyspark', 'pyarrow', 'sqlglot', 'deltalake'} & sys.modules.keys())"
    )
    assert python("-c", program).stdout == "set()\n"
