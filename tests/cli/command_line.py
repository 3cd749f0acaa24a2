"""The command line over a lake, and what it says."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from click.testing import Result
from typer.testing import CliRunner

from dagster_streamtables import Lake
from dagster_streamtables.cli import app

_NOTHING = dict.fromkeys(["STREAMTABLES_ROOT", "STREAMTABLES_TABLES"])


class CommandLine:
    """Its arguments begin with words as they are typed in a shell; further ones are as they are."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)

    @property
    def lake(self) -> Lake:
        return Lake(self.root)

    @property
    def environment(self) -> dict[str, str]:
        """What tells the command where things are."""
        return {"STREAMTABLES_ROOT": self.root}

    def run(self, words: str, *arguments: str, told: bool = True) -> Result:
        environment = {**_NOTHING, **(self.environment if told else {})}
        return CliRunner().invoke(app, [*shlex.split(words), *arguments], env=environment)

    def said(self, words: str, *arguments: str, code: int = 0) -> str:
        done = self.run(words, *arguments)
        assert done.exit_code == code, done.output
        return done.stdout

    def json(self, words: str, *arguments: str, code: int = 0) -> Any:
        return json.loads(self.said(words, *arguments, "--json", code=code))

    def by_table(self, words: str, code: int = 0) -> dict[str, Any]:
        return {each["table"]: each for each in self.json(words, code=code)}

    def refused(self, words: str, *arguments: str, code: int = 1) -> str:
        done = self.run(words, *arguments)
        assert (done.exit_code, done.stdout) == (code, ""), done.output
        assert "Traceback" not in done.stderr
        return done.stderr
