"""Run what users run on other versions of Spark and Python.

    python -m qa.versions --spark 4.0.5,4.1.4 --python python3.13

Each version gets an environment of its own below `.streamtables/versions`, made once.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import typer

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".streamtables/versions"
TESTS = (
    "tests/compiler/test_analysis.py",
    "tests/test_server.py",
    "tests/traps",
    "tests/runtime/test_cases_on_delta.py",
    "tests/runtime/test_recursion.py",
    "tests/changes/test_subscription.py",
)
BY_ADDRESS = ("tests/runtime/test_cases_on_delta.py", "tests/changes/test_subscription.py")


def main(
    spark: str = "4.0.5,4.1.4",
    python: str = sys.executable,
    tests: str = ",".join(TESTS),
    marked: str = "not hours",
    days: int = 1,
) -> None:
    """Run the tests, the example, and tests of this environment over a server of that version.

    Args:
        spark: Versions of `pyspark`.
        python: The command of a Python.
        tests: Files or folders of tests.
        marked: Those that pytest selects by this expression (-m).
        days: How many days of the example are played.
    """
    failed = [v for v in spark.split(",") if not _passes(v, python, tests.split(","), marked, days)]
    if failed:
        sys.exit(f"failed on {', '.join(failed)}")


def _passes(spark: str, python: str, tests: list[str], marked: str, days: int) -> bool:
    minor = "import sys; print('%d.%d' % sys.version_info[:2])"
    said = subprocess.run([python, "-c", minor], capture_output=True, text=True, check=True)
    name = f"spark-{spark}-python-{said.stdout.strip()}"
    programs = _environment(name, spark, python)
    print(f"== {name}", flush=True)
    home = {"STREAMTABLES_HOME": str(FOLDER / f"{name}-home")}
    environment = {**os.environ, **home, "PATH": f"{programs}:{os.environ['PATH']}"}
    commands = (
        ["python", "-m", "pytest", "-q", "-m", marked, *tests],
        ["python", "-m", "example_defs.headless", "--days", str(days)],
    )
    try:
        done = [subprocess.run([programs / each[0], *each[1:]], cwd=ROOT, env=environment)
                for each in commands]  # fmt: skip
        found = subprocess.run([programs / "streamtables", "spark", "url"], env=environment,
                               capture_output=True, text=True, check=True)  # fmt: skip
        over_it = {**os.environ, "STREAMTABLES_SPARK": found.stdout.strip()}
        newer = [sys.executable, "-m", "pytest", "-q", "-m", marked, *BY_ADDRESS]
        done.append(subprocess.run(newer, cwd=ROOT, env=over_it))
    finally:
        subprocess.run([programs / "streamtables", "spark", "stop"], env=environment)
    return all(each.returncode == 0 for each in done)


def _environment(name: str, spark: str, python: str) -> Path:
    """The folder of the programs of an environment."""
    folder = FOLDER / name
    programs = folder / "bin"
    if not (folder / "made").exists():
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
        wanted = ["--editable", f"{ROOT}[dev]", f"pyspark[connect]=={spark}"]
        subprocess.run([programs / "pip", "install", "--quiet", *wanted], check=True)
        (folder / "made").touch()
    return programs


if __name__ == "__main__":
    typer.run(main)
