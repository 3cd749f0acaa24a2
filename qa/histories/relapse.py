"""Bugs of the past, put back one at a time: does the generator find them, and how soon?

    python -m qa.histories.relapse                 all of them, ten minutes for each at most
    python -m qa.histories.relapse zero again      those whose title holds one of the words

Each is put back as a text in the place of another, in a copy of the repository in a temporary
folder, where the generator then runs: of histories, or of queries for a bug of the compiler. One
that is not found in time fails the command. The bugs are in `relapse.toml`.
"""

from __future__ import annotations

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

from qa.mutants.breakage import break_rule

ROOT = Path(__file__).parent.parent.parent
MINUTES = 10
HUNTS = {
    "histories": ("qa.histories", "--roots", "3", "--processes", "2"),
    "queries": ("qa.fuzz",),
    "names": ("qa.fuzz", "--engine", "names"),
}


@dataclass(frozen=True)
class Change:
    rule: str
    """A text that is in the package once."""
    broken: str

    def apply(self, root: Path) -> None:
        break_rule(root / "dagster_streamtables", self.rule, self.broken)


@dataclass(frozen=True)
class Bug:
    title: str
    """What was wrong."""
    changes: tuple[Change, ...]
    seed: int = 1
    hunt: str = "histories"
    """What looks for it; see `HUNTS`."""


def load() -> list[Bug]:
    written = tomllib.loads((Path(__file__).parent / "relapse.toml").read_text())
    return [
        Bug(**(each | {"changes": tuple(Change(**c) for c in each.pop("change"))}))
        for each in written["bug"]
    ]


def main(words: list[str]) -> int:
    chosen = [b for b in load() if not words or any(word in b.title.lower() for word in words)]
    found = [looked_for(bug) for bug in chosen]
    print(f"{sum(found)} of {len(chosen)} found within {MINUTES} minutes")
    return 0 if chosen and all(found) else 1


def looked_for(bug: Bug) -> bool:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        copy_package(Path(folder), "tests")
        for change in bug.changes:
            change.apply(Path(folder))
        hunt = [sys.executable, "-m", *HUNTS[bug.hunt], "--no-shrink"]
        run = subprocess.run(
            [*hunt, "--minutes", str(MINUTES), "--seed", str(bug.seed)],
            cwd=folder,
            # The package is the copy, whatever is installed.
            env=os.environ | {"PYTHONPATH": f"{folder}:{folder}/tests"},
            capture_output=True,
            text=True,
            check=False,
        )
    verdict = re.search(r"FAILED (after|on) .*\nreplay: .*", run.stdout)
    if verdict is None and run.returncode:
        raise RuntimeError(f"{bug.title}: the generator broke\n{run.stdout[-2000:]}{run.stderr}")
    covered = re.findall(r"^\d+ s: .*|^.* compared, .*", run.stdout, re.MULTILINE)[-1:]
    told = f"not found: {covered}" if verdict is None else verdict[0].replace("\n", ", ")
    print(f"{bug.title}: {told} ({time.monotonic() - began:.0f} s)", flush=True)
    return verdict is not None


def copy_package(folder: Path, *more: str) -> None:
    """The package, and what else is asked for."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("dagster_streamtables", *more):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
