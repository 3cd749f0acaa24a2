"""Stream tables refreshed and compared on Spark with real Delta tables.

A session and its sources cost seconds, a query less than one, so a batch of queries shares the
sources and the windows: each is a stream table of its own in one lake.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

import pyarrow as pa
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession

from compiler.database import Literals, Rows
from dagster_streamtables import Lake, Mode, StreamTable
from dagster_streamtables.compiler import read
from dagster_streamtables.errors import InvalidDefinition, UnsupportedQuery
from dagster_streamtables.runtime.spark.session import choose_codegen, open_session
from named_rows import NamedRows
from qa.fuzz.changes import Bag, Story
from qa.fuzz.duck import DuckEngine, NotHere
from qa.fuzz.names import Analysis, as_stored
from qa.fuzz.outcome import Outcome, Trial, Verdict, compiled, said
from qa.fuzz.schema import FuzzDatabase
from qa.fuzz.shrink import same_failure, shrink

FEED = {"delta.enableChangeDataFeed": "true"}


class SparkEngine:
    name = "Spark"
    batch = 8

    def __init__(self, session: SparkSession | None = None) -> None:
        self.session = session or open_session()
        self.database = FuzzDatabase()
        self.duck = DuckEngine()
        self.analysis = Analysis()

    def run(self, trial: Trial) -> Outcome:
        [outcome] = self.run_many([trial])
        return outcome

    def run_many(self, trials: list[Trial]) -> list[Outcome]:
        """All trials over the sources and the windows of the first."""
        with tempfile.TemporaryDirectory() as folder:
            return _Batch(self, Path(folder), trials).run()

    def shrunk(self, trial: Trial, failure: Outcome) -> Trial:
        """On DuckDB where it fails there too, which takes milliseconds a candidate."""
        there = self.duck.run(trial)
        if there.verdict is Verdict.FAILED:
            return self.duck.shrunk(trial, there)
        return shrink(trial, same_failure(self, failure), seconds=240)

    def expected(self, trial: Trial) -> list[Rows]:
        """As DuckDB has it; what only Spark runs has none."""
        return self.duck.expected(trial)

    def arrow(self, table: str, rows: list[Literals]) -> pa.Table:
        with self.database.fresh():
            self.database.hold(table, rows)
            return self.database.connection.sql(f'FROM "{table}"').to_arrow_table()


class _Batch:
    def __init__(self, engine: SparkEngine, folder: Path, trials: list[Trial]) -> None:
        self.engine, self.trials = engine, trials
        self.story: Story = trials[0].story
        self.lake = Lake(folder, spark=engine.session)
        self.random = Random(trials[0].text)
        self.outcomes: dict[int, Outcome] = {}
        self.first: dict[int, int] = {}

    def run(self) -> list[Outcome]:
        for i, trial in enumerate(self.trials):
            self._compile(i, trial)
        open_ = [i for i in range(len(self.trials)) if i not in self.outcomes]
        if open_:
            names = {n for i in open_ for n in read(as_stored(self.trials[i].text)).sources}
            self._follow(open_, tuple(sorted(names)))
        done = Outcome(Verdict.COMPARED)
        return [self.outcomes.get(i, done) for i in range(len(self.trials))]

    def _compile(self, i: int, trial: Trial) -> None:
        try:
            read(trial.text)
        except InvalidDefinition as error:
            self.outcomes[i] = Outcome(Verdict.REFUSED, f"cannot be read: {error.what}")
            return
        plan = compiled(as_stored(trial.text))
        if isinstance(plan, Outcome):
            refused = plan.verdict is Verdict.REFUSED
            self.outcomes[i] = plan if refused else self._if_it_runs(trial, plan)

    def _if_it_runs(self, trial: Trial, failed: Outcome) -> Outcome:
        """Spark tells whether the text means something."""
        try:
            self.engine.analysis.columns(trial.text)
        except NotHere as error:
            return Outcome(Verdict.NOT_HERE, str(error))
        return failed

    def _follow(self, open_: list[int], tables: tuple[str, ...]) -> None:
        states = self.story.states(tables)
        for table in tables:
            self._write(table, states[0][table])
        changed: set[int] = set()
        for window in range(len(states)):
            if window:
                for table in tables:
                    self._move(table, states[window - 1][table], states[window][table])
            for i in open_:
                if i not in self.outcomes and self._refresh(i, window):
                    changed.add(i)
        for i in changed:
            self.outcomes.setdefault(i, Outcome(Verdict.COMPARED, changed=True))

    def _refresh(self, i: int, window: int) -> bool:
        """One refresh and its comparison; whether other rows were there after it."""
        # Three rows out of five are no reason to recompute here: the change is the test.
        table = StreamTable(
            f"st{i}",
            self.trials[i].text,
            mode=Mode.DIFFERENTIAL,
            differential_max_change_ratio=0,
        )
        try:
            done = self.lake.refresh(table)
            expected, found = self._rows_of_text(i), self._rows(self.lake.read(table.name))
        except UnsupportedQuery as error:
            misnamed = "not those that Spark returns" in str(error)
            verdict = Verdict.FAILED if window or misnamed else Verdict.REFUSED
            self.outcomes[i] = Outcome(verdict, f"window {window}: {error.what}")
            return False
        except Exception as error:
            # Plain Spark may run a query until its rows have a value that cannot be cast.
            refuses = self._refuses(i)
            verdict = Verdict.NOT_HERE if refuses else Verdict.FAILED
            self.outcomes[i] = Outcome(verdict, refuses or f"window {window}: {said(error)}")
            return False
        if "could not" in done.reason:
            self.outcomes[i] = Outcome(Verdict.FAILED, f"window {window}: {done.reason}")
        elif wrong := found.difference(expected):
            self.outcomes[i] = Outcome(Verdict.FAILED, f"window {window}: {done.action}: {wrong}")
        return bool(window and (done.inserted or done.deleted))

    def _refuses(self, i: int) -> str:
        """What Spark says against the user's own text; nothing, if it runs."""
        try:
            self._rows_of_text(i)
        except Exception as error:
            return said(error)
        return ""

    def _rows_of_text(self, i: int) -> NamedRows:
        """What plain Spark makes of the user's own text."""
        place, text = self.lake.location, read(as_stored(self.trials[i].text))
        rows = self.engine.session.sql(text.over(lambda name: f"delta.`{place(name)}`").sql)
        return self._rows(rows)

    def _rows(self, answer: DataFrame) -> NamedRows:
        """To compile a statement takes longer than to run it over some rows."""
        choose_codegen(self.engine.session, 0)
        return rows_of(answer)

    def _write(self, table: str, bag: Bag, mode: str = "overwrite") -> None:
        rows = self.engine.arrow(table, list(bag.elements()))
        place = self.lake.location(table)
        Path(place).mkdir(parents=True, exist_ok=True)
        write_deltalake(place, rows, mode=mode, configuration=FEED)  # type: ignore[arg-type]

    def _move(self, table: str, then: Bag, now: Bag) -> None:
        """Rows that only came are appended, now and then in two commits; else all is written."""
        if then == now:
            return
        came = now - then
        if then - now or self.random.random() < 0.2:
            self._write(table, now)
        elif came.total() > 1 and self.random.random() < 0.5:
            one = Bag(list(came.elements())[:1])
            self._write(table, one, "append")
            self._write(table, came - one, "append")
        else:
            self._write(table, came, "append")


def rows_of(answer: DataFrame) -> NamedRows:
    """The rows as text; maps in the order of their keys."""
    return NamedRows.of_spark(answer, _text)


def _text(value: object) -> str:
    if isinstance(value, dict):
        return str(sorted((_text(key), _text(each)) for key, each in value.items()))
    if isinstance(value, list | tuple):
        return str([_text(each) for each in value])
    # Sums of doubles in another order, whose last digit may differ.
    return f"{value:.9g}" if isinstance(value, float) else str(value)
