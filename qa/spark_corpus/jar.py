"""The JAR that has Spark's SQL tests, fetched once into ``$STREAMTABLES_HOME``.

It is fetched as Delta's JARs are: by Spark's Ivy, from Maven Central or from the mirror that
``STREAMTABLES_IVY_SETTINGS`` or ``spark.jars.ivySettings`` names.
"""

from __future__ import annotations

import subprocess
import tempfile
import zipfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from dagster_streamtables.errors import EnvironmentProblem
from dagster_streamtables.runtime.spark.environment import home, lock, variable
from dagster_streamtables.runtime.spark.jars import (
    _complaints,
    _ivy_jar,
    _spark_default,
    check_java,
)

_MODULE = "spark-sql_2.13"
_INPUTS, _DATA = "sql-tests/inputs/", "test-data/postgresql/"


def corpus() -> Path:
    """The folder with ``sql-tests/inputs`` and ``test-data/postgresql``.

    Raises:
        EnvironmentProblem: The JAR could not be fetched.
    """
    return fetched("spark-corpus", version("pyspark"), _fetch)


def fetched(name: str, released: str, fetch: Callable[[str, Path], None]) -> Path:
    """The folder of a release in ``$STREAMTABLES_HOME``, made by the first process that asks."""
    folder = home() / name / released
    if not folder.is_dir():
        with lock(name, "fetching.lock"):
            if not folder.is_dir():
                fetch(released, folder)
    return folder


def _fetch(released: str, folder: Path) -> None:
    """Unpack into a temporary folder, which gets its final name when it is complete."""
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetching-") as work:
        jar = Path(work) / f"{_MODULE}-{released}-tests.jar"
        java = check_java() / "bin" / "java"
        command = [str(java), "-cp", str(_ivy_jar()), "org.apache.ivy.Main"]
        said = subprocess.run(
            [*command, *_ivy(Path(work), released)], capture_output=True, text=True
        )
        if said.returncode or not jar.is_file():
            raise EnvironmentProblem(
                f"Spark's SQL tests (org.apache.spark:{_MODULE}:{released}, classifier tests) "
                "could not be fetched",
                where="\n".join(_complaints(said.stdout + said.stderr)),
                why="they are not part of this repository; the first run downloads their JAR",
                fix="connect this machine for the first run, or name a mirror's Ivy settings file "
                "in STREAMTABLES_IVY_SETTINGS",
            )
        unpacked = Path(work) / "unpacked"
        with zipfile.ZipFile(jar) as opened:
            names = [n for n in opened.namelist() if n.startswith((_INPUTS, _DATA))]
            opened.extractall(unpacked, names)
        unpacked.rename(folder)


def _ivy(work: Path, released: str) -> list[str]:
    wanted = work / "ivy.xml"
    wanted.write_text(
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        '<info organisation="streamtables" module="corpus"/><dependencies>'
        f'<dependency org="org.apache.spark" name="{_MODULE}" rev="{released}" transitive="false">'
        f'<artifact name="{_MODULE}" type="jar" ext="jar" m:classifier="tests"/>'
        "</dependency></dependencies></ivy-module>"
    )
    pattern = f"{work}/[artifact]-[revision](-[classifier]).[ext]"
    arguments = ["-ivy", str(wanted), "-cache", f"{work}/cache", "-retrieve", pattern]
    settings = variable("STREAMTABLES_IVY_SETTINGS") or _spark_default("spark.jars.ivySettings")
    return [*arguments, *(["-settings", settings] if settings else [])]
