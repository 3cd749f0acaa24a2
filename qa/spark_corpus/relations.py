"""The tables and views of a test file: its statements run in a session of plain Spark.

A view that reads tables becomes a view of the product. Whatever else a query can read, a table or a
view of VALUES, becomes a Delta table with the rows that it has at that moment.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
    VarcharType,
)

from dagster_streamtables.compiler import Text, View, tokenize_query
from dagster_streamtables.compiler.text.query_text import replace_mention
from dagster_streamtables.compiler.text.token_edits import apply_edits
from dagster_streamtables.errors import StreamTablesError
from dagster_streamtables.runtime.spark.connect import arrow_rows, query

_VIEW = re.compile(
    r"""(?isx) ^ \s* CREATE \s+ (OR\s+REPLACE\s+)? (GLOBAL\s+)? (TEMP(ORARY)?\s+)? VIEW \s+
    (IF\s+NOT\s+EXISTS\s+)? (?P<name>[\w.`]+) \s* (\((?P<columns>[\w\s,`]+)\))? \s*
    AS \b (?P<query>.*) $"""
)
_CREATED = re.compile(
    r"(?is)^\s*CREATE\s+(?:OR\s+REPLACE\s+)?(?:GLOBAL\s+|TEMP\s+|TEMPORARY\s+|EXTERNAL\s+)*"
    r"(?:TABLE|VIEW)\s+(?:IF\s+NOT\s+EXISTS\s+)?(?P<name>[\w.`]+)"
)
_NOT_STORED = re.compile(r"\b(interval|time\(|time\b(?!stamp)|geo|null|udt)", re.IGNORECASE)
MOST_ROWS = 20_000
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""To compile a statement takes longer than to run it over some rows."""


class NotLoaded(Exception):
    """A table of the corpus that cannot be made here."""


class NotStorable(Exception):
    """Delta has no such columns."""


@dataclass(frozen=True)
class Base:
    """A table that a stream table can read."""

    name: str
    """As its creation spells it."""
    rows: pa.Table
    schema: StructType


@dataclass
class Relations:
    """What queries of a file can read, at this point of the file."""

    session: SparkSession
    views: dict[str, View] = field(default_factory=dict[str, View])
    """By their names in lower case."""
    spellings: dict[str, str] = field(default_factory=dict[str, str])
    """Name in lower case → as its creation spells it."""

    def define(self, statement: str) -> None:
        """Note the view or table of a statement that Spark has run."""
        if created := _CREATED.match(statement):
            name = _unquoted(created["name"])
            self.spellings[name.lower()] = name
            self.views.pop(name.lower(), None)
        if made := _VIEW.match(statement):
            query_text = made["query"].strip()
            if mentioned(query_text):
                name = _unquoted(made["name"])
                columns = made["columns"]
                names = tuple(_unquoted(c) for c in columns.split(",")) if columns else None
                self.views[name.lower()] = View(name, query_text, names)

    def spelled(self, name: str) -> str:
        """A name as the creation of the table spells it, or else as it was read first."""
        return self.spellings.setdefault(name.lower(), name)

    def respelled(self, sql: str) -> str:
        """The query with names of tables as their creation spells them."""
        return renamed(sql, {name.lower(): self.spelled(name) for name in mentioned(sql)})

    def read_by(self, sql: str) -> tuple[dict[str, View], list[str]]:
        """The views that a query reads, directly or not, and the names of its tables."""
        views: dict[str, View] = {}
        tables: dict[str, None] = {}
        todo = [sql]
        while todo:
            for name in mentioned(todo.pop()):
                view = self.views.get(name.lower())
                if view is None:
                    tables[self.spelled(name)] = None
                elif name.lower() not in views:
                    views[name.lower()] = replace(view, query=self.respelled(view.query))
                    todo.append(view.query)
        return views, list(tables)

    def require_present_types(self, view: View) -> None:
        """
        Raises:
            NotLoaded: Its query has other types by now. Spark casts them to those of its
                definition, and a view of the product has none of its own.
        """
        kept = self.session.table(view.name).schema
        now = self.session.sql(view.query).schema
        if [each.dataType for each in kept.fields] != [each.dataType for each in now.fields]:
            raise NotLoaded("a view that keeps the types of its definition")

    def load(self, name: str) -> Base:
        """The rows of a table as they are now.

        Raises:
            NotLoaded: They are too many, or of a type or value that cannot be written here.
            NotStorable: Delta has no such columns.
        """
        quoted = ".".join(f"`{part}`" for part in name.split("."))
        found = query(self.session, f"SELECT * FROM {quoted}", {})
        schema = found.schema
        _require_storable(schema)
        rows = arrow_rows(found.limit(MOST_ROWS + 1))
        if rows.num_rows > MOST_ROWS:
            raise NotLoaded(f"more than {MOST_ROWS} rows")
        try:
            rows.validate(full=True)
        except pa.ArrowInvalid as error:
            raise NotLoaded("a STRING that is not UTF-8") from error
        given = nullable(schema)
        return Base(name, rows.cast(to_arrow_schema(given, timezone="UTC")), given)


def _require_storable(schema: StructType) -> None:
    from dagster_streamtables.compiler import is_storable

    names = [each.name.lower() for each in schema.fields]
    for each in schema.fields:
        kind = each.dataType.simpleString()
        if not is_storable(each.name) or names.count(each.name.lower()) > 1:
            raise NotStorable("the name of a column of a table")
        if kind == "void" or not_stored(kind):
            raise NotStorable(f"a column of a table, of type {_kind(kind)}")
        if "variant" in kind or "collate" in kind:
            raise NotLoaded("a table with VARIANT or a collation, which delta-rs does not write")


def not_stored(kind: str) -> bool:
    """Whether Delta has no columns of a type, as Spark writes it; VOID counts as one that it has.

    >>> not_stored("array<interval day to second>"), not_stored("timestamp"), not_stored("time(6)")
    (True, False, True)
    """
    return _NOT_STORED.search(kind.replace("timestamp", "")) is not None


def _kind(kind: str) -> str:
    return "INTERVAL" if "interval" in kind else "TIME" if "time" in kind else kind.upper()[:20]


def nullable(schema: StructType) -> StructType:
    """The columns as a table has them whose windows put NULLs in, nested values included."""
    made = _with_nulls(schema)
    assert isinstance(made, StructType)
    return made


def _with_nulls(kind: DataType) -> DataType:
    match kind:
        case StructType():
            fields = [StructField(f.name, _with_nulls(f.dataType), True) for f in kind.fields]
            return StructType(fields)
        case ArrayType():
            return ArrayType(_with_nulls(kind.elementType), True)
        case MapType():
            return MapType(_with_nulls(kind.keyType), _with_nulls(kind.valueType), True)
        case CharType() | VarcharType():  # which were padded when they were read
            return StringType()
        case _:
            return kind


def _unquoted(name: str) -> str:
    return name.strip().replace("`", "")


def mentioned(sql: str) -> tuple[str, ...]:
    """The names of tables and views in a query; none where they cannot be found."""
    try:
        return tokenize_query(sql).sources
    except StreamTablesError:
        return ()


def renamed(sql: str, names: Mapping[str, str], *, alias: bool = False) -> str:
    """The query with names of tables replaced.

    Args:
        sql: The query.
        names: Old names in lower case, and the new ones; others stay.
        alias: Whether the old name goes on to qualify columns.

    >>> renamed("SELECT T.a FROM T, u", {"t": "t"})
    'SELECT T.a FROM t, u'
    """
    try:
        text = tokenize_query(sql)
        return apply_edits(text.sql, tuple(sorted(_edits(text, names, alias), key=lambda e: e[:2])))
    except StreamTablesError:
        return sql


def _edits(text: Text, names: Mapping[str, str], alias: bool) -> Iterator[tuple[int, int, str]]:
    for mention in text.source_mentions:
        new = names.get(mention.name.lower())
        if new is None or new == mention.name:
            continue
        quoted = ".".join(f"`{p}`" if not p.isidentifier() else p for p in new.split("."))
        if alias:
            yield from replace_mention(mention, quoted)
        else:
            yield mention.start, mention.stop, quoted


def own_session(settings: Mapping[str, str]) -> SparkSession:
    """A session of plain Spark that shares nothing but the server."""
    from dagster_streamtables.runtime.spark.session import open_session

    session = open_session(session_id=str(uuid.uuid4()))
    for name, value in settings.items():
        session.conf.set(name, value)
    return session
