"""The wheel by itself: in an environment that has it, and nothing but what it declares to need.

The environment is new, but its dependencies are links to those that are installed here: fetching
them again would take minutes. What `pyproject.toml` does not declare is not in it.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from pages import DOCS, PROJECT, blocks

pytestmark = pytest.mark.process

NAME = "dagster-streamtables"


@dataclass(frozen=True)
class Environment:
    folder: Path

    @property
    def packages(self) -> Path:
        [found] = (self.folder / "lib").glob("python*/site-packages")
        return found

    def run(self, *command: str | Path, cwd: Path, **variables: str) -> str:
        """What a program of the environment prints, when it sees nothing of this repository."""
        kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        done = subprocess.run(
            [self.folder / "bin" / command[0], *command[1:]],
            cwd=cwd,
            env=kept | {"PYTHONSAFEPATH": "1", **variables},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The package, built as for a release (source distribution → wheel), and installed."""
    folder = tmp_path_factory.mktemp("wheel")
    built = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(PROJECT)]
    subprocess.run(built, check=True, capture_output=True, timeout=300)
    [wheel] = folder.glob("*.whl")
    venv.create(folder / "venv", symlinks=True)
    made = Environment(folder / "venv")
    python = str(made.folder / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--quiet"]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True, timeout=300)
    _link(made.packages)
    return made


def _link(packages: Path) -> None:
    """Put what the package needs, and what that needs, into an environment."""
    [wheel] = importlib.metadata.distributions(name=NAME, path=[str(packages)])
    for distribution in _needed(wheel):
        for file in distribution.files or ():
            top = file.parts[0]
            if top not in ("..", "bin", "__pycache__") and not (packages / top).exists():
                (packages / top).symlink_to(Path(str(distribution.locate_file(top))))


def _needed(wheel: Distribution) -> Iterator[Distribution]:
    """The distributions that would be installed along, without any extra of the package."""
    todo = list(_requirements(wheel, ""))
    seen: set[tuple[str, str]] = set()
    while todo:
        name, extra = todo.pop()
        if (name, extra) not in seen:
            seen.add((name, extra))
            distribution = importlib.metadata.distribution(name)
            yield distribution
            todo += _requirements(distribution, extra)


def _requirements(distribution: Distribution, extra: str) -> Iterator[tuple[str, str]]:
    for line in distribution.requires or ():
        need = Requirement(line)
        if need.marker is None or need.marker.evaluate({"extra": extra}):
            yield from ((need.name, each) for each in ("", *need.extras))


def test_the_wheel_has_what_is_no_code_and_nothing_else_of_the_repository(
    environment: Environment, tmp_path: Path
) -> None:
    place = environment.run(
        "python", "-c", "import dagster_streamtables as d; print(d.__file__)", cwd=tmp_path
    )
    package = environment.packages / "dagster_streamtables"
    assert Path(place.strip()).parent == package
    for path in (PROJECT / "dagster_streamtables").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert (package / path.relative_to(PROJECT / "dagster_streamtables")).exists(), path
    assert (package / "py.typed").exists()
    [about] = environment.packages.glob("dagster_streamtables-*.dist-info")
    assert "Apache License" in (about / "licenses" / "LICENSE").read_text()
    assert "License-Expression: Apache-2.0" in (about / "METADATA").read_text()
    recorded = (about / "RECORD").read_text()
    tops = {line.split("/")[0] for line in recorded.splitlines()}
    assert tops == {"..", "dagster_streamtables", about.name}


def test_every_public_name_is_there_with_nothing_but_what_is_declared(
    environment: Environment, tmp_path: Path
) -> None:
    """A library that is imported and not declared would be found here only.

    The server's are an extra, which its command names, as are those of PostgreSQL's client.
    """
    modules = (
        "import importlib, pkgutil, dagster_streamtables as d\n"
        "for name in d.__all__: getattr(d, name)\n"
        "for each in pkgutil.walk_packages(d.__path__, 'dagster_streamtables.'):\n"
        "    extra = '.serve.' in each.name or '.replication.postgres.' in each.name\n"
        "    extra or each.name.endswith('__main__') or importlib.import_module(each.name)\n"
        "print('all')"
    )
    assert environment.run("python", "-c", modules, cwd=tmp_path) == "all\n"
    assert "status" in environment.run("streamtables", "--help", cwd=tmp_path)
    with pytest.raises(AssertionError, match=r"pip install 'dagster-streamtables\[serve\]'"):
        environment.run("streamtables", "serve", "--root", ".", cwd=tmp_path)


def test_tests_and_what_only_they_need_are_not_in_the_environment(
    environment: Environment, tmp_path: Path
) -> None:
    """Else the tests above would pass whatever is declared."""
    absent = ("duckdb", "hypothesis", "mkdocs", "casefile", "example_defs", "dagster_webserver")
    program = f"from importlib.util import find_spec as f; print([*filter(f, {absent})])"
    assert environment.run("python", "-c", program, cwd=tmp_path) == "[]\n"


def test_the_first_page_of_the_guide_runs_from_the_wheel(
    environment: Environment, tmp_path: Path, spark: object
) -> None:
    text = (DOCS / "guide.md").read_text()
    page = blocks(text[: text.index("## What a refresh records")])
    for block in page:
        if file := re.match(r"-- (tables/\S+\.sql)\n", block.text):
            (tmp_path / file[1]).parent.mkdir(parents=True)
            (tmp_path / file[1]).write_text(block.text)
    (tmp_path / "page.py").write_text(
        "\n".join(block.text for block in page if block.language == "python")
    )
    printed = environment.run("python", "page.py", cwd=tmp_path)

    assert printed == "".join(block.text for block in page if block.role == "output")
    assert "DIFFERENTIAL - 1 changed row" in printed
    shown = environment.run("streamtables", "status", "--json", "--root", "lake", cwd=tmp_path)
    assert '"mart.revenue"' in shown


def test_the_code_of_a_user_is_typed_strictly(environment: Environment, tmp_path: Path) -> None:
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    (tmp_path / "user.py").write_text((PROJECT / "tests" / "user_code.py").read_text())
    (tmp_path / "wrong.py").write_text(
        "from dagster_streamtables import Lake, StreamTable\n"
        "Lake('lake').refresh('mart.paid')\n"
        "print(Lake('lake').check(StreamTable('a.b', 'SELECT 1')).same)\n"
    )
    told = _pyright(environment, tmp_path)
    about_user = [line for line in told if "user.py:" in line]
    assert not about_user, f"a public name is not typed for its users: {about_user}"
    wrong = "\n".join(line for line in told if "wrong.py:" in line)
    assert 'cannot be assigned to parameter "table"' in wrong
    assert 'Cannot access attribute "same" for class "Comparison"' in wrong


def _pyright(environment: Environment, folder: Path) -> list[str]:
    python = str(environment.folder / "bin" / "python")
    command = [Path(sys.executable).parent / "pyright", "--pythonpath", python, "--warnings"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    return done.stdout.splitlines()
