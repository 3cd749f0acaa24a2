"""Rules broken on purpose, one at a time: a test of the tests.

    python -m qa.mutants              all of them, in ten minutes or twenty
    python -m qa.mutants min null     those whose title holds one of the words

Each copies the compiler and its tests to a temporary folder, breaks one rule there, and runs the
cases on DuckDB until one notices. A mutant that none notices fails the command. The rules are in
`mutants.toml`.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

from qa.mutants.breakage import break_rule, broken, module_of

ROOT = Path(__file__).parents[2]
COMPILER = Path("dagster_streamtables/compiler")
TESTS = Path("tests/compiler")
HARNESS = (
    "__init__.py",
    "casefile.py",
    "conftest.py",
    "database.py",
    "intermediate.py",
    "test_cases.py",
    "test_make_deterministic.py",
    "test_maps.py",
    "test_output_names.py",
    "test_query_text.py",
    "test_render.py",
    "test_time_windows.py",
    "test_variants.py",
)
OWN = {
    "stages": "test_stages.py",
    "runtime_filters": "test_runtime_filters.py",
    "semijoin_reduction": "test_semijoin_reduction.py",
    "intermediate": "test_intermediate.py",
    "decorrelate": "test_intermediate.py",
    "storable_types": "test_storable_types.py",
    "foreign_syntax": "test_refused.py",
    "numeric": "test_postgres_rules.py",
    "output_names": "test_output_names.py",
    "stars": "test_stars.py",
}
"""The tests of modules that have some of their own; those of the others are the cases."""
CONFTEST = """\
from hypothesis import Phase, settings

settings.register_profile("first", phases=[Phase.explicit, Phase.generate])
settings.load_profile("first")
"""
"""Random rows that fail are not made fewer, which takes minutes: nobody reads them."""


@dataclass(frozen=True)
class Mutant:
    title: str
    """What the broken compiler does."""
    rule: str
    """A text that is in the compiler once."""
    broken: str
    cases: str
    """Those that should notice, as pytest's -k takes them, of the case files that it names."""
    tests: str = ""
    """The file with the tests that should, where it is not that of the module."""
    within: str = ""
    """The class or function that the rule stands in, where others have the same text."""


def load() -> list[Mutant]:
    written = tomllib.loads((Path(__file__).parent / "mutants.toml").read_text())
    return [Mutant(**each) for each in written["mutant"]]


def main(words: list[str]) -> int:
    began = time.monotonic()
    mutants = load()
    if found := mistakes(mutants):
        print("\n".join(found))
        return 1
    chosen = [m for m in mutants if not words or any(word in m.title.lower() for word in words)]
    survivors = [mutant.title for mutant in chosen if not killed(mutant)]
    for title in survivors:
        print(f"SURVIVED: {title}")
    count = f"{len(chosen) - len(survivors)} of {len(chosen)} mutants killed"
    print(f"{count} in {time.monotonic() - began:.0f} s")
    return 1 if survivors or not chosen else 0


def mistakes(mutants: list[Mutant]) -> list[str]:
    """All texts that are no longer in their modules or make no Python, before any test runs."""
    found: list[str] = []
    if len({each.title for each in mutants}) < len(mutants):
        found.append("two mutants have one title")
    for mutant in mutants:
        try:
            source = module_of(ROOT / COMPILER, mutant.rule, mutant.within).read_text()
            ast.parse(broken(source, mutant.rule, mutant.broken, mutant.within))
        except (ValueError, SyntaxError) as mistake:
            found.append(f"{mutant.title}: {mistake}")
    return found


def killed(mutant: Mutant) -> bool:
    """Whether a test fails: of the cases as written, or of 300 random runs of each."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        copy_compiler(Path(folder), set(re.findall(r"\w+", mutant.cases)))
        package = Path(folder) / COMPILER
        module = break_rule(package, mutant.rule, mutant.broken, mutant.within)
        tests = OWN.get(module.stem, "test_cases.py")
        run = _tested(Path(folder), mutant, tests, "not thorough")
        if run.returncode != 1:
            thorough = _tested(Path(folder), mutant, tests, "thorough")
            # 5 is that none of the tests is one.
            run = run if thorough.returncode == 5 else thorough
    # 0 is a pass, 1 a failed test or a module of tests that could not be imported; the last, and
    # anything else, is a mistake in the list of mutants, and no proof.
    if run.returncode not in (0, 1) or "ERROR collecting" in run.stdout:
        raise RuntimeError(f"{mutant.title}: pytest ended with {run.returncode}\n{run.stdout}")
    verdict = f"killed by {_noticed(run.stdout)}" if run.returncode else "survived"
    print(f"{mutant.title}: {verdict} ({time.monotonic() - began:.1f} s)", flush=True)
    return run.returncode == 1


def copy_compiler(folder: Path, cases: set[str]) -> None:
    """The compiler alone, which needs nothing of the package around it but errors and settings.

    Of the cases only the files that are asked for: pytest takes seconds to collect all of them.
    """
    package = folder / COMPILER
    shutil.copytree(ROOT / COMPILER, package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "dagster_streamtables/errors.py", package.parent)
    shutil.copytree(ROOT / "dagster_streamtables/setting", package.parent / "setting")
    (package.parent / "__init__.py").touch()
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / TESTS / "cases").mkdir(parents=True)
    for file in (ROOT / TESTS / "cases").glob("*.sql"):
        if file.stem in cases | {"tables"}:
            shutil.copy(file, folder / TESTS / "cases")
    texts = (file.name for file in (ROOT / TESTS).glob("*.txt"))
    for name in {*HARNESS, *OWN.values(), *texts}:
        shutil.copy(ROOT / TESTS / name, folder / TESTS)
    (folder / "tests/conftest.py").write_text(CONFTEST)


def _tested(
    folder: Path, mutant: Mutant, tests: str, marked: str
) -> subprocess.CompletedProcess[str]:
    pytest = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=line"]
    return subprocess.run(
        [*pytest, TESTS / (mutant.tests or tests), "-k", mutant.cases, "-m", marked],
        cwd=folder,
        env={**os.environ, "STREAMTABLES_EXAMPLES": "300"},
        capture_output=True,
        text=True,
        check=False,
    )


def _noticed(output: str) -> str:
    """The first line of pytest that says what failed, and why."""
    failed = (line for line in output.splitlines() if line.startswith(("FAILED", "ERROR")))
    return next(failed, "").partition("::")[2]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
