"""What the pages of docs/ and the README say is so: their code runs, their messages exist."""

from __future__ import annotations

import importlib.util
import io
import re
import shlex
import traceback
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sqlglot
import typer
import yaml
from dagster._cli import create_dagster_cli
from dagster._config.validate import process_config
from dagster._core.instance.config import dagster_instance_config_schema
from dagster._daemon.cli import create_dagster_daemon_cli
from dagster_webserver.cli import dagster_webserver
from deltalake import write_deltalake

import messages
from compiler import casefile
from compiler.database import TABLES, Database
from dagster_streamtables import Lake, StreamTablesResource, build_definitions, load_tables
from dagster_streamtables.cli import app
from dagster_streamtables.compiler import compile_query
from dagster_streamtables.compiler.text.sqlglot_dialects import DIALECT
from dagster_streamtables.declarations import find_problems
from dagster_streamtables.errors import StreamTablesError
from operator_pages import FOLDER, PAGES, STEPS, examples, written
from pages import DOCS, PROJECT, Block, blocks, code, rows

ELSEWHERE = {
    "checks.md": "test_docs.py",
    "component.md": "components/test_page.py",
    "metrics.md": "cli/test_operation_page.py",
    "operation.md": "cli/test_operation_page.py",
    "replication.md": "replication/test_replication_page.py",
}
"""Pages whose code another test runs."""

ROOT = [PROJECT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")]
EVERY = [*ROOT, *sorted(DOCS.rglob("*.md"))]
OWN = [path for path in EVERY if path.name not in ELSEWHERE]
KINDS = {"python", "sql", "yaml", "sh", "text", "toml"}
ROLES = {
    "query",
    "before",
    "change",
    "tables",
    "delta",
    "explain",
    "bound",
    "statement",
    "output",
    "dagster.yaml",
    "",
}


def name(path: Path) -> str:
    return str(path.relative_to(PROJECT))


def is_spark(path: Path) -> bool:
    """Whether running the page's Python takes Spark, as the page says in its first lines."""
    return "<!-- runs on Spark -->" in path.read_text()


def _file_of(block: Block) -> Path | None:
    named = re.match(r"-- (tables/\S+\.sql)\n", block.text)
    return Path(named[1]) if named else None


LONG = ("databricks.md", "dbt.md", "snowflake.md")
"""Pages whose tables are those of others once more: their code runs in `make test-long`."""


def _marks(path: Path) -> list[pytest.MarkDecorator]:
    marks = [pytest.mark.spark] if is_spark(path) else []
    return [*marks, pytest.mark.long] if path.name in LONG else marks


pages = pytest.mark.parametrize("path", OWN, ids=name)
run = pytest.mark.parametrize(
    "path",
    [
        pytest.param(p, marks=_marks(p), id=name(p))
        for p in OWN
        if any(block.language == "python" or _file_of(block) for block in blocks(p.read_text()))
        and p.name != "README.md"  # its code has sources of its own: see test_readme.py
    ],
)


def test_the_code_of_every_other_page_is_run_by_the_test_that_is_named() -> None:
    for page, test in ELSEWHERE.items():
        assert (DOCS / page).exists()
        assert page in (PROJECT / "tests" / test).read_text().replace('" / "', "/")


@pages
def test_every_block_has_a_known_kind(path: Path) -> None:
    """So none is left out by a misspelled word."""
    text = path.read_text()
    found = blocks(text)
    assert len(re.findall(r"^```\w", text, flags=re.M)) == len(found)
    for block in found:
        assert block.language in KINDS, f"{path}:{block.line}"
        assert block.role in ROLES, f"{path}:{block.line}"


@run
def test_python_and_tables_of_a_page(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Python runs from top to bottom in an empty folder; ``-- tables/…`` is a file in it."""
    monkeypatch.chdir(tmp_path)
    if is_spark(path):
        request.getfixturevalue("spark")
    _run(path)


def _run(path: Path) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    printed = ""
    found = blocks(path.read_text())
    if "sources of the [guide]" in path.read_text() or not any(
        block.language == "python" for block in found
    ):
        _write_the_sources_of_the_guide()
    for block in found:
        if block.not_run:
            continue
        if block.language == "python":
            printed = _ran(block, path, names)
        elif (block.language, block.role) == ("text", "output"):
            _same(block, path, printed)
        elif block.language == "sql" and (file := _file_of(block)):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text)
    if files := sorted(Path("tables").rglob("*.sql")):
        try:
            _declares(files)
        except StreamTablesError as error:
            raise AssertionError(f"{path}: a table of the page is wrong: {error}") from error


def _declares(files: list[Path]) -> None:
    """Load the files of a page as a code location, and compile them over what is stored."""
    resource = StreamTablesResource(root="lake")
    defs = build_definitions(
        folder="tables", resource=resource, strict=True, min_schedule_seconds=0
    )
    made = {key.path[-1] for key in defs.resolve_asset_graph().get_all_asset_keys()}
    assert {file.stem for file in files} <= made
    for problem in find_problems(load_tables("tables"), Lake("lake"), min_schedule_seconds=0):
        raise problem.error


def _write_the_sources_of_the_guide() -> None:
    """For a page that says so, or has only tables, which could not be compiled without them."""
    orders = pa.table({"id": [1, 2, 3], "customer": [1, 1, 2], "amount": [10, 20, 5]})
    customers = pa.table({"id": [1, 2], "region": ["north", "south"]})
    for source, data in {"orders": orders, "customers": customers}.items():
        write_deltalake(Path("lake/sales") / source, data)


def _ran(block: Block, path: Path, names: dict[str, Any]) -> str:
    lines = "\n" * (block.line - 1) + block.text  # an error then names the line of the page
    with redirect_stdout(io.StringIO()) as out:
        try:
            exec(compile(lines, str(path), "exec"), names)
        except Exception as error:
            raise AssertionError(
                f"{path}:{_line_of(error, path) or block.line}: this example does not run: "
                f"{type(error).__name__}: {error}. Correct the page, or the code if the page is "
                "right; what needs more than an empty folder is marked `<!-- not run: why -->`"
            ) from error
    return out.getvalue()


def _line_of(error: Exception, path: Path) -> int | None:
    frames = traceback.extract_tb(error.__traceback__)
    return next((each.lineno for each in frames if each.filename == str(path)), None)


def _same(block: Block, path: Path, printed: str) -> None:
    assert block.text.strip() == printed.strip(), (
        f"{path}:{block.line}: the page says that its example prints something else than it does. "
        "Copy what it prints, or correct the code if the page is right"
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "```python\nx = 1\nprint(y)\n```",
            r"page\.md:3: .* not run: NameError: .*Correct the page",
        ),
        ("```python\nx = (\n```", r"page\.md:2: .* not run: SyntaxError: "),
        (
            "```python\nprint(1)\n```\n\n```text output\n2\n```",
            r"page\.md:6: .*Copy what it prints",
        ),
        (
            "```sql\n-- tables/a/b.sql\nSELECT rand() AS x FROM sales.orders\n```",
            r"page\.md: a table of the page is wrong: [^\n]*rand\(\)",
        ),
    ],
)
def test_an_example_that_does_not_run_is_told_with_its_line_and_what_to_do(
    text: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{text}\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match=told):
        _run(page)


@pages
def test_sql_is_sql(path: Path) -> None:
    for block in blocks(path.read_text()):
        if block.language == "sql" and not block.not_run:
            asked = re.search(r"^-- dialect: (\w+)$", block.text, flags=re.M)
            sqlglot.parse(block.text, read=asked[1] if asked else DIALECT)


@pages
def test_yaml_says_what_its_reader_takes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", "postgresql://user:word@host/dagster")
    for block in blocks(path.read_text()):
        if block.language != "yaml":
            continue
        said = yaml.safe_load(block.text)
        assert isinstance(said, dict), f"{path}:{block.line}"
        if block.role == "dagster.yaml":
            checked = process_config(dagster_instance_config_schema(), said)
            assert checked.success, f"{path}:{block.line}: {checked.errors}"


@pages
def test_commands_are_there_and_take_these_options(path: Path) -> None:
    for block in blocks(path.read_text()):
        if block.language == "sh" and not block.not_run:
            for line in re.sub(r"\\\n", " ", block.text).splitlines():
                words = shlex.split(line, comments=True)
                if words:
                    assert _is_command(words), f"{path}:{block.line}: {line}"


def _gone(text: str) -> list[str]:
    """Files of this repository that a page names and that are not there."""
    folders = "benchmarks|dagster_streamtables|docs|example_defs|tests"
    named = re.findall(rf"(?<![\w/.])(?:{folders})/[\w/.*-]*[\w*/]", text)
    return [each for each in named if not any(PROJECT.glob(each.rstrip("/")))]


@pytest.mark.parametrize("path", EVERY, ids=name)
def test_files_of_the_repository_that_a_page_names_are_there(path: Path) -> None:
    gone = _gone(path.read_text())
    assert not gone, f"{name(path)} names {', '.join(gone)}: write where that is now"


def test_a_file_that_is_not_there_is_found() -> None:
    assert _gone("`tests/gone.py`, `tests/pages.py`, docs/*.md, docs/*.rst") == [
        "tests/gone.py",
        "docs/*.rst",
    ]


def _is_command(words: list[str]) -> bool:
    while "=" in words[0] and words[1:]:  # a variable before the command
        words = words[1:]
    match words:
        case ["make", target, *_]:
            makefile = (PROJECT / "Makefile").read_text()
            return re.search(rf"^{target}:", makefile, flags=re.M) is not None
        case ["streamtables", *rest]:
            return _takes(typer.main.get_command(app), rest)
        case ["python" | ".venv/bin/python", "-m", module, *_]:
            return importlib.util.find_spec(module) is not None
        case (
            [".venv/bin/pytest", *_]
            | ["pip", "install", *_]
            | ["export", *_]
            | ["git", "clone", *_]
            | ["spark-submit", *_]
            | ["cd", _]
        ):
            return True
        case ["dagster", *rest]:
            return _takes(create_dagster_cli(), rest)
        case ["dagster-daemon", *rest]:
            return _takes(create_dagster_daemon_cli(), rest)
        case ["dagster-webserver", *rest]:
            return _takes(dagster_webserver, rest)
    return False


def _takes(command: Any, words: list[str]) -> bool:
    while hasattr(command, "commands"):  # typer has a click of its own
        found = command.commands.get(words[0]) if words else None
        if found is None and getattr(command, "invoke_without_command", False):
            break  # a command of its own, with others below it
        if found is None:
            return False
        command, words = found, words[1:]
    options = {name for each in command.params for name in each.opts}
    return all(word.split("=")[0] in options for word in words if word.startswith("-"))


def test_the_index_of_operators_lists_every_page() -> None:
    index = (FOLDER / "index.md").read_text()
    linked = set(re.findall(r"\]\((\w+\.md)\)", index))
    lacking = {path.name for path in PAGES} - {"index.md"} - linked
    assert not lacking, f"add a row to the table of docs/operators/index.md for {lacking}"


@pytest.fixture(scope="module")
def database() -> Database:
    return Database()


@pytest.mark.parametrize("path", [*PAGES, STEPS], ids=name)
def test_examples_come_to_what_their_pages_say(path: Path, database: Database) -> None:
    text = path.read_text()
    assert written(text, database) == text, "run python -m tests.operator_pages"
    for example in examples(text):
        assert example.delta is not None, f"{path}: an example without its change"


def test_every_operator_page_shows_how_it_is_maintained() -> None:
    for path in PAGES:
        if path.name != "index.md":
            text = path.read_text()
            assert any(example.plan is not None for example in examples(text)), path
            for head in ("## Cost", "## Caveats", "## How it is maintained"):
                assert head in text, f"{path} lacks {head}"


def test_the_tables_of_the_examples_are_those_of_the_cases() -> None:
    [block] = [b for b in blocks((FOLDER / "index.md").read_text()) if b.role == "tables"]
    for create in sqlglot.parse(block.text, read="spark"):
        assert create is not None
        columns = {c.name: c.args["kind"].sql("spark") for c in create.this.expressions}
        assert TABLES[create.this.this.name] == columns
    assert casefile.CASES.exists()


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_what_is_refused_is_refused_so_and_what_stands_instead_is_not(path: Path) -> None:
    for query, message, instead in rows(path.read_text(), "query"):
        [sql], [what] = code(query), code(message)
        with pytest.raises(StreamTablesError) as refused:
            compile_query(sql, TABLES)
        assert refused.value.what == what
        for rewrite in code(instead):
            if rewrite.startswith(("SELECT ", "WITH ")) and "…" not in rewrite:
                compile_query(rewrite, TABLES)


TROUBLE = (DOCS / "troubleshooting.md").read_text()


def test_every_message_is_explained_and_no_other() -> None:
    explained = [code(row[0])[0] for row in rows(TROUBLE, "message")]
    assert len(set(explained)) == len(explained), "a message is explained twice"
    there = messages.messages()
    missing = {text: place for text, place in there.items() if text not in explained}
    assert not missing, "add a row to a table of docs/troubleshooting.md for each of these"
    assert not set(explained) - set(there), "no error of the code begins so"


def test_no_message_is_hidden_from_this_test() -> None:
    assert messages.unread() == []


def test_every_reason_that_is_explained_is_one() -> None:
    folder = messages.PACKAGE / "runtime" / "refresh"
    source = "".join((folder / name).read_text() for name in ("refresh_decisions.py", "refresh.py"))
    told = re.sub(r"\{[^{}]*\}", "…", source).replace('"\n        f"', "")
    for row in rows(TROUBLE, "reason"):
        [reason] = code(row[0])
        assert reason.lstrip(", ") in told, reason


PAGE = (Path(__file__).parent.parent / "docs" / "checks.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)


def test_the_definitions_have_the_checks_and_the_schedules_of_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "paid.sql").write_text("-- on_full: warn\nSELECT id FROM orders")
    found: dict[str, object] = {}
    exec(BLOCKS[0], found)
    repository = found["defs"].get_repository_def()  # type: ignore[attr-defined]
    first = PAGE[: PAGE.index("[Change assets]")]
    listed = re.findall(r"^\| `(\w+)` \| .* \| .* \| .* \| .* \|$", first, flags=re.M)
    made = sorted(key.name for key in repository.asset_graph.asset_check_keys)
    assert sorted(listed) == made, "each check has a row in the table of docs/checks.md"
    assert {schedule.execution_timezone for schedule in repository.schedule_defs} == {
        "Europe/Berlin"
    }
    assert {sensor.name for sensor in repository.sensor_defs} == {
        "streamtables_refresh",
        "streamtables_alerts",
    }


def test_every_kind_of_alert_is_explained() -> None:
    from dagster_streamtables import AlertKind

    explained = PAGE[PAGE.index("| kind | when |") :]
    for kind in AlertKind:
        assert f"`{kind}`" in explained


def test_the_example_of_a_function_is_python() -> None:
    [block] = [each for each in BLOCKS if "to_chat" in each]
    found: dict[str, object] = {}
    exec(block, found)
    assert callable(found["to_chat"])
