"""Rules broken on purpose, one at a time: a test of the tests.

    python -m tests.mutants              all of them, about two minutes
    python -m tests.mutants min null     those whose title holds one of the words

Each copies the compiler and its tests to a temporary folder, breaks one rule there, and runs the
cases on DuckDB. A mutant that no case notices fails the command.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
COMPILER = Path("dagster_streamtables/compiler")


@dataclass(frozen=True)
class Mutant:
    title: str
    module: str
    rule: str
    broken: str
    cases: str
    """The case files that should notice, as pytest's -k takes them."""


MUTANTS = [
    Mutant(
        "a join reads both sides after",
        "operators/join.py",
        "self.over(left.before, right.change)",
        "self.over(left.after, right.change)",
        "join",
    ),
    Mutant(
        "a join reads both sides before",
        "operators/join.py",
        "self.over(left.change, right.after)",
        "self.over(left.change, right.before)",
        "join",
    ),
    Mutant(
        "a left join does not take back the answers of before",
        "operators/left_linear.py",
        "- self.over(asked_again, right.before)",
        "- self.over(asked_again, right.after)",
        "outer_join",
    ),
    Mutant(
        "a left join asks the left rows of after again",
        "operators/left_linear.py",
        "left.before.only(right.change",
        "left.after.only(right.change",
        "outer_join",
    ),
    Mutant(
        "a left join asks no row again",
        "operators/left_linear.py",
        "asked_again = left.before.only(right.change, self.keys)",
        "return self.over(left.change, right.after)",
        "outer_join",
    ),
    Mutant(
        "an anti join keeps the rows with a partner",
        "operators/anti_join.py",
        "exp.Not(this=exp.Exists(this=partner))",
        "exp.Exists(this=partner)",
        "outer_join",
    ),
    Mutant(
        "NULL keys do not touch their group",
        "operators/algebra.py",
        "exp.NullSafeEQ(this=within(left",
        "exp.EQ(this=within(left",
        "having or subquery or aggregate",
    ),
    Mutant(
        "NULL keys do not find their stored row",
        "regroup.py",
        "return exp.NullSafeEQ(",
        "return exp.EQ(",
        "aggregate",
    ),
    Mutant(
        "a subtraction adds",
        "operators/algebra.py",
        "else exp.Literal.number(-1)",
        "else exp.Literal.number(1)",
        "having or subquery or union",
    ),
    Mutant(
        "groups are taken away as they are now",
        "operators/aggregate.py",
        "self.input.before.only_keys",
        "self.input.after.only_keys",
        "subquery",
    ),
    Mutant(
        "rows that cancel are left in the change",
        "operators/net.py",
        "return query.having(some)",
        "return query",
        "scan or project",
    ),
    Mutant(
        "SUM ignores weights",
        "partial.py",
        "exp.Sum(this=exp.Mul(this=value, expression=weight))",
        "exp.Sum(this=value)",
        "aggregate",
    ),
    Mutant(
        "COUNT ignores weights",
        "partial.py",
        "weight: exp.Expr = weight_column()",
        "weight: exp.Expr = exp.Literal.number(1)",
        "aggregate or distinct",
    ),
    Mutant(
        "COUNT(x) counts NULL",
        "partial.py",
        "weight = exp.Case().when(_present(argument), weight)",
        "pass",
        "aggregate",
    ),
    Mutant(
        "MIN and MAX do not look at what went",
        "partial.py",
        "went = exp.Case().when(gone.copy(), argument.copy())",
        "went = exp.null()",
        "aggregate",
    ),
    Mutant(
        "a MIN that lost a copy of itself stands",
        "fold.py",
        "worse = exp.GT if",
        "worse = exp.GTE if",
        "aggregate",
    ),
    Mutant(
        "a lost group is stored as it is",
        "fold.py",
        '.when(column("lost"), exp.Literal.number(0))',
        '.when(column("lost"), exp.Literal.number(1))',
        "aggregate",
    ),
    Mutant(
        "floats are subtracted",
        "fold.py",
        "return [exp.EQ(this=went, expression=exp.Literal.number(1))]",
        "return []",
        "aggregate",
    ),
    Mutant(
        "decimals too wide to weigh are added",
        "fold.py",
        "return [exp.true()]",
        "return []",
        "aggregate",
    ),
    Mutant(
        "what a fold adds is put in place of what was stored",
        "fold.py",
        "return exp.Add(this=old, expression=change)",
        "return change",
        "aggregate",
    ),
    Mutant(
        "the sum of nothing is 0",
        "fold.py",
        "return exp.Case().when(nothing, exp.cast(exp.null(), type_)).else_(total)",
        "return total",
        "aggregate",
    ),
    Mutant(
        "a group without rows stays",
        "fold.py",
        ".when(self._empty(), exp.Literal.number(-1))",
        ".when(exp.false(), exp.Literal.number(-1))",
        "aggregate or distinct",
    ),
    Mutant(
        "HAVING is forgotten when a group is computed again",
        "plan.py",
        "if self.root.having is not None:",
        "if False:",
        "having",
    ),
    Mutant(
        "the one group of no keys is computed again from nothing",
        "plan.py",
        "else Aggregate(rows, (), measures).only(touched, ())",
        "else Aggregate(rows.only(touched, ()), (), measures)",
        "having",
    ),
    Mutant(
        "a subquery without an alias is asked by one that is not in the text",
        "root.py",
        "table if table.lower() in aliases else None",
        "table",
        "subquery",
    ),
    Mutant(
        "an expression that can fail is a key of a left join",
        "operators/left_linear.py",
        "return safe and bool(names)",
        "return bool(names)",
        "outer_join",
    ),
    Mutant(
        "FULL JOIN forgets the right rows without a partner",
        "lower.py",
        "return OuterJoin(left, right, condition) + Project(lonely, (*nulls, *kept))",
        "return OuterJoin(left, right, condition)",
        "outer_join",
    ),
    Mutant(
        "FILTER lets every row through",
        "lower.py",
        "if condition is not None:",
        "if False:",
        "aggregate",
    ),
    Mutant(
        "UNION keeps copies",
        "lower.py",
        'return distinct(rows) if query.args["distinct"] else rows',
        "return rows",
        "union",
    ),
    Mutant(
        "a source that stands still loses its rows",
        "simplify.py",
        "if step.moment is Moment.CHANGE else step.at(Moment.AFTER)",
        "if True else step.at(Moment.AFTER)",
        "join or cte",
    ),
]


def main(words: list[str]) -> int:
    chosen = [m for m in MUTANTS if not words or any(word in m.title.lower() for word in words)]
    survivors = [mutant.title for mutant in chosen if not killed(mutant)]
    for title in survivors:
        print(f"SURVIVED: {title}")
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants killed")
    return 1 if survivors or not chosen else 0


def killed(mutant: Mutant) -> bool:
    """Whether the cases notice; they are run until the first that does."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        package = copy / COMPILER
        shutil.copytree(ROOT / COMPILER, package)
        shutil.copy(ROOT / "pyproject.toml", copy)
        shutil.copy(ROOT / "dagster_streamtables/errors.py", package.parent)
        (package.parent / "__init__.py").touch()
        shutil.copytree(ROOT / "tests/cases", copy / "tests/cases")
        for name in ("casefile.py", "database.py", "test_cases.py"):
            shutil.copy(ROOT / "tests" / name, copy / "tests")
        _break(package / mutant.module, mutant)
        pytest = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        run = subprocess.run(
            [*pytest, "tests/test_cases.py", "-k", mutant.cases],
            cwd=copy,
            capture_output=True,
            text=True,
            check=False,
        )
    # 0 is a pass, 1 a failed test; anything else is a mistake in this file.
    if run.returncode not in (0, 1):
        raise RuntimeError(f"{mutant.title}: pytest ended with {run.returncode}\n{run.stdout}")
    verdict = "killed by" if run.returncode else "survived"
    noticed = [line for line in run.stdout.splitlines() if line.startswith("FAILED")]
    print(f"{mutant.title}: {verdict} {''.join(noticed).removeprefix('FAILED ')}", flush=True)
    return run.returncode == 1


def _break(module: Path, mutant: Mutant) -> None:
    source = module.read_text()
    if source.count(mutant.rule) != 1:
        raise RuntimeError(f'{mutant.title}: "{mutant.rule}" is not once in {module.name}')
    module.write_text(source.replace(mutant.rule, mutant.broken))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
