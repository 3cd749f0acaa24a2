"""What Spark needs beside its own wheel: a Java runtime, Delta's JARs, and our log store for S3.

Delta's main JAR is built for one minor version of Spark, that of the installed `pyspark`. Of the 33
JARs that Delta's Maven coordinates require, Spark's own distribution already contains all
but Delta's own five. Spark's Ivy downloads these once, without their dependencies, to
``$STREAMTABLES_HOME/jars``; later starts contact no registry.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from dagster_streamtables.errors import EnvironmentProblem
from dagster_streamtables.runtime.spark import log_store
from dagster_streamtables.runtime.spark.environment import home, lock, variable

DELTA_VERSION = "4.4.0"
"""The version of the `delta-spark` wheel that `pyproject.toml` asks for."""
SPARK_VERSIONS = ("4.0", "4.1", "4.2")
"""The versions of Spark that this version of Delta fits."""

_OF_ANY_SPARK = (
    "delta-storage",
    "delta-kernel-api",
    "delta-kernel-defaults",
    "delta-kernel-unitycatalog",
)
_OLDEST_JAVA = 17


def check_java() -> Path:
    """The folder of the Java to run Spark with: `JAVA_HOME`, or that of the ``java`` on PATH.

    Raises:
        EnvironmentProblem: There is none, or none is new enough.
    """
    found: list[str] = []
    for java in _java_commands():
        version = _java_version(java)
        if version is not None and version >= _OLDEST_JAVA:
            return java.resolve().parent.parent
        found.append(f"{java} is {'no working Java' if version is None else f'Java {version}'}")
    what = f"Spark needs Java {_OLDEST_JAVA} or newer, and this machine has no Java"
    if found:
        what = f"Spark needs Java {_OLDEST_JAVA} or newer, but {' and '.join(found)}"
    raise EnvironmentProblem(
        what,
        fix=f"install Java {_OLDEST_JAVA} or 21, and put it on PATH or name its folder in "
        "JAVA_HOME",
    )


def delta_jars() -> list[Path]:
    """The files of Delta's JARs, downloaded the first time.

    Raises:
        EnvironmentProblem: They could not be downloaded, or there is no Java.
    """
    spark = spark_version()
    folder = home() / "jars" / f"delta-{DELTA_VERSION}-for-spark-{spark}"
    modules = (f"delta-spark_{spark}_2.13", *_OF_ANY_SPARK)
    jars = [folder / f"{module}-{DELTA_VERSION}.jar" for module in modules]
    if not folder.is_dir():
        with lock("jars", "fetching.lock"):
            if not folder.is_dir():
                _fetch(jars)
    return jars


def spark_version() -> str:
    """The minor version of the installed `pyspark`, such as 4.2.

    Raises:
        EnvironmentProblem: Delta does not fit it.
    """
    installed = metadata.version("pyspark")
    minor = ".".join(installed.split(".")[:2])
    if minor not in SPARK_VERSIONS:
        raise EnvironmentProblem(
            f"pyspark {installed} is installed, which Delta {DELTA_VERSION} does not fit",
            fix=f"install pyspark {', '.join(SPARK_VERSIONS[:-1])} or {SPARK_VERSIONS[-1]}",
        )
    return minor


def jars_setting() -> str:
    """The JARs for ``spark.jars``: URIs, since a comma in a path would end it."""
    return ",".join(jar.as_uri() for jar in _all_jars())


def class_path() -> list[Path]:
    """The same JARs, and what the user has on the class path of Spark."""
    theirs = (_spark_default("spark.driver.extraClassPath") or "").split(os.pathsep)
    return [*_all_jars(), *(Path(each) for each in theirs if each)]


def _all_jars() -> list[Path]:
    return [*delta_jars(), log_store.JAR]


def jars_of_spark() -> list[Path]:
    """The files of Spark's own JARs."""
    return sorted((spark_folder() / "jars").glob("*.jar"))


def spark_folder() -> Path:
    """The folder of Spark's distribution in the pyspark wheel, found without importing it."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0])


def _java_commands() -> Iterator[Path]:
    if named := os.environ.get("JAVA_HOME"):
        yield Path(named) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield Path(on_path)


def _java_version(java: Path) -> int | None:
    """The major version; None if the command is missing or only a stub."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    return int(version.group(1)) if version and said.returncode == 0 else None


def _fetch(jars: list[Path]) -> None:
    """Download into a temporary folder, which gets its final name when it is complete."""
    java = check_java() / "bin" / "java"
    folder = jars[0].parent
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetching-") as work:
        options = _ivy(jars, Path(work))
        command = [str(java), "-cp", str(_ivy_jar()), "org.apache.ivy.Main", *options]
        said = subprocess.run(command, capture_output=True, text=True, umask=0o077)
        fetched = Path(work) / "jars"
        if said.returncode or not all((fetched / jar.name).is_file() for jar in jars):
            raise EnvironmentProblem(
                f"Delta's JARs (io.delta, version {DELTA_VERSION}) could not be fetched",
                where="\n".join(_complaints(said.stdout + said.stderr)),
                why="no wheel contains them; the first start downloads them from Maven Central",
                fix="connect this machine for the first start, name a mirror's Ivy settings file "
                f"in STREAMTABLES_IVY_SETTINGS, or copy the five JARs to {folder}",
            )
        fetched.rename(folder)


def _ivy(jars: list[Path], work: Path) -> list[str]:
    names = (jar.name.removesuffix(f"-{DELTA_VERSION}.jar") for jar in jars)
    modules = "".join(
        f'<dependency org="io.delta" name="{name}" rev="{DELTA_VERSION}" transitive="false"/>'
        for name in names
    )
    wanted = work / "ivy.xml"
    wanted.write_text(
        f'<ivy-module version="2.0"><info organisation="streamtables" module="jars"/>'
        f"<dependencies>{modules}</dependencies></ivy-module>"
    )
    pattern = f"{work}/jars/[artifact]-[revision].[ext]"
    arguments = ["-ivy", str(wanted), "-cache", f"{work}/cache", "-retrieve", pattern]
    settings = variable("STREAMTABLES_IVY_SETTINGS") or _spark_default("spark.jars.ivySettings")
    return [*arguments, "-types", "jar", *(["-settings", settings] if settings else [])]


def _ivy_jar() -> Path:
    return next((spark_folder() / "jars").glob("ivy-*.jar"))


def _spark_default(name: str) -> str | None:
    """A setting of the user's ``spark-defaults.conf``."""
    folder = os.environ.get("SPARK_CONF_DIR")
    defaults = Path(folder) / "spark-defaults.conf" if folder else None
    if defaults is None or not defaults.is_file():
        return None
    found = re.search(rf"(?m)^\s*{re.escape(name)}[\s=]+(\S+)", defaults.read_text())
    return found.group(1) if found else None


def _complaints(output: str) -> list[str]:
    lines = [line.strip() for line in output.splitlines()]
    return [line for line in lines if re.search("not found|ERROR|WARN|xception", line)][-5:]
