"""Every base type of the server, with extreme values: what is stored is what the server says."""

from __future__ import annotations

from typing import Any

import psycopg
import pyarrow as pa
import pytest

from dagster_streamtables.errors import InvalidDefinition, PublisherProblem
from named_rows import tuples
from replication.postgres.database import VERSION, Database
from replication.postgres.test_reading import SLOT

TYPES = (
    "CREATE SCHEMA x",
    "CREATE TYPE x.mood AS ENUM ('sad', 'So, \"happy\"')",
    "CREATE DOMAIN x.positive AS numeric(5,1) CHECK (VALUE > 0)",
    "CREATE DOMAIN x.numbers AS int[]",
    "CREATE TYPE x.pair AS (a int, b text)",
)
FLOATS = ["NaN", "Infinity", "-Infinity", "-0", "0.1"]
EXACT: dict[str, tuple[pa.DataType, list[str]]] = {
    "bool": (pa.bool_(), ["true", "false"]),
    "int2": (pa.int16(), ["-32768", "32767", "0"]),
    "int4": (pa.int32(), ["-2147483648", "2147483647"]),
    "int8": (pa.int64(), ["-9223372036854775808", "9223372036854775807"]),
    "oid": (pa.int64(), ["4294967295", "0"]),
    "float4": (pa.float32(), [*FLOATS, "1e-45", "3.4028235e38"]),
    "float8": (pa.float64(), [*FLOATS, "5e-324", "1.7976931348623157e308"]),
    "numeric(10,2)": (pa.decimal128(10, 2), ["99999999.99", "-99999999.99", "0", "0.005"]),
    "numeric(38,0)": (pa.decimal128(38, 0), ["9" * 38, "-" + "9" * 38]),
    "numeric(38,38)": (pa.decimal128(38, 38), ["0." + "9" * 38]),
    "numeric(3,5)": (pa.decimal128(5, 5), ["0.00999", "-0.00001"]),
    "numeric(3,-2)": (pa.decimal128(5, 0), ["99900", "-100"]),
    "text": (pa.string(), ["", "NULL", "\\N", "a\tb\nc\r\n", "ü€😀", 'x"y,{}\\', "x" * 100_000]),
    "varchar(20)": (pa.string(), ["", "exactly twenty chars"]),
    "char(5)": (pa.string(), ["a", "", "abcde"]),
    '"char"': (pa.string(), ["a"]),
    "name": (pa.string(), ["a name"]),
    "json": (pa.string(), ['{"b": 1,  "a": [1.0, null]}', "null"]),
    "jsonb": (pa.string(), ['{"b": 1,  "a": [1.0, null]}', "1e400"]),
    "xml": (pa.string(), ["<a b='1'>&lt;</a>", "no <b>root</b>"]),
    "uuid": (pa.string(), ["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"]),
    "x.mood": (pa.string(), ["sad", "So, \"happy\""]),
    "x.positive": (pa.decimal128(5, 1), ["0.1", "9999.9"]),
    "x.numbers": (pa.list_(pa.int32()), ["{1,NULL,-3}", "{}"]),
    "bytea": (pa.binary(), ["", "\\x00ff", "\\xdeadbeef" + "00" * 1000]),
    "date": (pa.date32(), ["0001-01-01", "9999-12-31", "1582-10-10", "1970-01-01"]),
    "timestamp": (
        pa.timestamp("us"),
        ["0001-01-01 00:00:00", "9999-12-31 23:59:59.999999", "1969-12-31 23:59:59.9"],
    ),
    "timestamptz": (
        pa.timestamp("us", "UTC"),
        ["0001-01-01 00:00:00+00", "9999-12-31 23:59:59.999999+00", "2024-03-31 02:30:00+01:30"],
    ),
    "int4[]": (pa.list_(pa.int32()), ["{}", "{1,NULL,2147483647}"]),
    "bool[]": (pa.list_(pa.bool_()), ["{t,f,NULL}"]),
    "float8[]": (pa.list_(pa.float64()), ["{NaN,-Infinity,-0,NULL}"]),
    "numeric(6,2)[]": (pa.list_(pa.decimal128(6, 2)), ["{1.5,-9999.99,NULL}"]),
    "text[]": (pa.list_(pa.string()), ['{"",NULL,"NULL","a,b","{x}","\\"\\\\"," ",ü,"\n"}', "{}"]),
    "bytea[]": (pa.list_(pa.binary()), ['{"\\\\x00ff",NULL,""}']),
    "uuid[]": (pa.list_(pa.string()), ["{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}"]),
    "date[]": (pa.list_(pa.date32()), ["{0001-01-01,9999-12-31}"]),
    "timestamptz[]": (pa.list_(pa.timestamp("us", "UTC")), ['{"2024-01-01 00:00:00+00",NULL}']),
    "json[]": (pa.list_(pa.string()), ['{"{\\"a\\": [1, 2]}"}']),
    "x.mood[]": (pa.list_(pa.string()), ["{sad}"]),
}  # fmt: skip
"""Type → what is stored, and values besides NULL."""
INFINITE = ["Infinity", "-Infinity"] if VERSION >= 14 else []
BY_CHOICE: dict[str, list[str]] = {
    "numeric": ["NaN", *INFINITE, "1" * 1000 + "." + "3" * 1000, "0.10"],
    "numeric(39,0)": ["9" * 39],
    "time": ["00:00:00", "24:00:00", "23:59:59.999999"],
    "timetz": ["00:00:00+15:59:59"],
    "interval": ["-178000000 years", "1 mon -1 day 00:00:00.000001"],
    "money": ["-92233720368547758.08", "1234.5"],
    "inet": ["::1/64", "127.0.0.1"],
    "cidr": ["10.0.0.0/8"],
    "macaddr": ["08:00:2b:01:02:03"],
    "macaddr8": ["08:00:2b:01:02:03:04:05"],
    "bit(5)": ["10101"],
    "varbit": ["", "1"],
    "tsvector": ["'a':1 'b'"],
    "tsquery": ["'a' & !'b'"],
    "point": ["(1,-0)"],
    "line": ["{1,2,3}"],
    "lseg": ["[(0,0),(1,1)]"],
    "box": ["(1,1),(0,0)"],
    "path": ["((0,0),(1,1))"],
    "polygon": ["((0,0),(1,1),(2,0))"],
    "circle": ["<(0,0),1>"],
    "int4range": ["[1,10)", "empty", "(,)"],
    "int8range": ["[1,)"],
    "numrange": ["[1.0,2.0]"],
    "tsrange": ["[2024-01-01,infinity]"],
    "tstzrange": ["[2024-01-01 00:00:00+00,)"],
    "daterange": ["[2024-01-01,2024-01-02)"],
    "int4multirange": ["{[1,2),[5,6)}"],
    "int8multirange": ["{(,)}"],
    "nummultirange": ["{[1.0,2.0],(3,4)}", "{}"],
    "tsmultirange": ["{[2024-01-01,infinity]}"],
    "tstzmultirange": ["{[2024-01-01 00:00:00+00,)}"],
    "datemultirange": ["{[2024-01-01,2024-01-02)}"],
    "pg_lsn": ["FFFFFFFF/FFFFFFFF"],
    "xid": ["4294967295"],
    "xid8": ["18446744073709551615"],
    "cid": ["0"],
    "tid": ["(4294967295,65535)"],
    "regclass": ["pg_class"],
    "regtype": ["integer"],
    "regproc": ["now"],
    "regprocedure": ["abs(integer)", "-"],
    "regoper": ["pg_catalog.||/"],
    "regoperator": ["+(integer,integer)"],
    "regrole": ["postgres"],
    "regnamespace": ["pg_catalog"],
    "regconfig": ["english"],
    "regdictionary": ["simple"],
    "regcollation": ['"C"'],
    "refcursor": ["a cursor"],
    "aclitem": ["postgres=r/postgres"],
    "int2vector": ["1 2"],
    "oidvector": ["1 2"],
    "txid_snapshot": ["10:20:10,14"],
    "pg_snapshot": ["10:20:10,14"],
    "jsonpath": ['$."a"'],
    "x.pair": ["(1,)", '(1,"a,b")'],
    "box[]": ["{(1,1),(0,0);(2,2),(1,1)}"],
    "time[]": ["{00:00:00,NULL}"],
}
"""Types that a Delta table does not have, or not with all their values."""
LATER = {
    "pg_snapshot": 13,
    "regcollation": 13,
    "xid8": 13,
    **dict.fromkeys([kind for kind in BY_CHOICE if kind.endswith("multirange")], 14),
    "numeric(3,5)": 15,
    "numeric(3,-2)": 15,
}
"""Types → the server that is the first to have them."""
for kinds in (EXACT, BY_CHOICE):
    for late in {kind for kind, since in LATER.items() if since > VERSION} & kinds.keys():
        del kinds[late]
NO_VALUE = [
    ("timestamp", "infinity"),
    ("timestamptz", "-infinity"),
    ("timestamptz", "10000-01-01 00:00:00+00"),
    ("timestamp", "0044-03-15 00:00:00 BC"),
    ("date", "infinity"),
    ("date", "0001-12-31 BC"),
    ("numeric(5,2)", "NaN"),
    ("int4[]", "{{1,2},{3,4}}"),
    ("int4[]", "[0:1]={1,2}"),
    ("date[]", "{infinity}"),
]
"""Values that are none of the type that is stored."""


INTERNAL = {
    "gtsvector", "pg_brin_bloom_summary", "pg_brin_minmax_multi_summary", "pg_dependencies",
    "pg_mcv_list", "pg_ndistinct", "pg_node_tree",
}  # fmt: skip
"""Types of which nobody can write a value."""


def test_no_base_type_is_left_out(database: Database) -> None:
    known = [kind for kind in [*EXACT, *BY_CHOICE] if not kind.startswith("x.")]
    oids = ", ".join(f"to_regtype('{kind}')" for kind in known)
    found = database.run(
        "SELECT typname FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace "
        "AND typtype IN ('b', 'r', 'm') AND NOT EXISTS (SELECT FROM pg_type AS element "
        f"WHERE element.typarray = pg_type.oid) AND oid NOT IN ({oids})"
    )
    assert {name for (name,) in found} <= INTERNAL


def make(database: Database, types: list[str]) -> None:
    columns = ", ".join(f"c{i} {kind}" for i, kind in enumerate(types))
    database.run(*TYPES)
    database.publish(f"id int PRIMARY KEY, {columns}", SLOT)


def fill(database: Database, values: dict[str, list[str]]) -> int:
    """A row for each value, with NULL in all other columns; and one of NULLs."""
    number = 0
    with database.connect() as connection:
        for i, (kind, each) in enumerate(values.items()):
            if kind == "xml" and not reads_xml(database):
                continue
            for value in each:
                number += 1
                query = f"INSERT INTO t (id, c{i}) VALUES ({number}, %s::text::{kind})"
                connection.execute(query, [value])  # type: ignore[arg-type]
        connection.execute("INSERT INTO t (id) VALUES (0)")
    return number + 1


def reads_xml(database: Database) -> bool:
    """The wheel's server is built without libxml: it has the type, and takes no value of it."""
    try:
        return bool(database.run("SELECT '<a/>'::xml"))
    except psycopg.errors.FeatureNotSupported:
        return False


def copied(database: Database, table: str = "public.t", **settings: Any) -> pa.Table:
    with database.publisher(**settings).copy("s", [table]) as copy:
        return copy.rows(table).read_all()


def read(database: Database, table: str = "public.t", **settings: Any) -> pa.Table:
    after = {table: database.position("s")}
    batch = database.publisher(**settings).read("s", after, None, max_rows=10**6).require()
    return pa.Table.from_struct_array(batch.tables[table].rows["new"])


def test_every_type_that_has_an_equal(database: Database) -> None:
    make(database, list(EXACT))
    count = fill(database, {kind: values for kind, (_, values) in EXACT.items()})
    found = read(database)
    assert found.num_rows == count
    assert _texts(copied(database)) == _texts(found)
    # What psycopg makes of the values is independent of what is stored; a text is as it is.
    types = enumerate((kind, arrow) for kind, (arrow, _) in EXACT.items())
    asked = ", ".join(_asked(f"c{i}", *each) for i, each in types)
    expected = database.run("SET timezone = 'UTC'", f"SELECT id, {asked} FROM t ORDER BY id")
    names = ["id", *(f"c{i}" for i in range(len(EXACT)))]
    stored = tuples(found.sort_by("id").select(names))
    for i, (kind, (arrow, _)) in enumerate(EXACT.items(), 1):
        assert found.schema.field(names[i]).type == arrow, kind
        for theirs, ours in zip(expected, stored, strict=True):
            assert _plain(theirs[i]) == _plain(ours[i]), (kind, theirs[i])


def _texts(rows: pa.Table) -> tuple[pa.Schema, list[str]]:
    """NaN is equal to itself here, and -0.0 is not 0.0."""
    return rows.schema, [repr(row) for row in rows.sort_by("id").to_pylist()]


def _asked(column: str, kind: str, arrow: pa.DataType) -> str:
    if pa.types.is_string(arrow):
        return _as_written(column)
    if pa.types.is_list(arrow) and pa.types.is_string(arrow.value_type):
        return f"{column}::text[]"
    return f"{column}::float8" if kind == "float4" else column


def _as_written(column: str) -> str:
    """By the type's output function, which a cast to text does not always call."""
    return f"CASE WHEN {column} IS DISTINCT FROM NULL THEN format('%s', {column}) END"


def _plain(value: Any) -> Any:
    """As a value that is equal only to itself, with its type."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value.isoformat() if hasattr(value, "isoformat") else (type(value), repr(value))


def test_every_other_type_is_stored_as_text_by_choice(database: Database) -> None:
    make(database, list(BY_CHOICE))
    count = fill(database, BY_CHOICE)
    names = [f"c{i}" for i in range(len(BY_CHOICE))]
    types = {f"public.t.{name}": "text" for name in names}
    found = read(database, types=types)
    assert _texts(copied(database, types=types)) == _texts(found)
    assert found.schema == pa.schema([("id", pa.int32()), *((name, pa.string()) for name in names)])
    asked = ", ".join(map(_as_written, names))
    expected = database.run("SET search_path = ''", f"SELECT id, {asked} FROM public.t ORDER BY id")
    assert tuples(found.sort_by("id").select(["id", *names])) == expected
    assert len(expected) == count


def test_types_without_an_equal_are_refused_by_the_names_of_their_columns(
    database: Database,
) -> None:
    make(database, list(BY_CHOICE))
    with pytest.raises(PublisherProblem) as error:
        database.publisher().offer().require()
    for i, kind in enumerate(BY_CHOICE):
        assert f"public.t.c{i}: " in error.value.why, kind
    assert "types={" in error.value.fix


def test_a_numeric_gets_the_digits_that_are_chosen(database: Database) -> None:
    make(database, ["numeric"])
    database.run("INSERT INTO t VALUES (1, 12), (2, 1.001)")
    for key, choice, arrow, expected in [
        ("public.t.c0", "numeric(38, 9)", pa.decimal128(38, 9), ["12.000000000", "1.001000000"]),
        ("numeric", "numeric(5,3)", pa.decimal128(5, 3), ["12.000", "1.001"]),
        ("decimal", "TEXT", pa.string(), ["12", "1.001"]),
        ("*", "text", pa.string(), ["12", "1.001"]),
    ]:
        types = {key: choice}
        published = database.publisher(types=types).offer().require()["public.t"]
        assert published.schema.field("c0").type == arrow
        assert read(database, types=types)["c0"].cast(pa.string()).to_pylist() == expected
    for take in (read, copied):
        with pytest.raises(PublisherProblem, match=r'column "c0" of "public\.t"') as error:
            take(database, types={"numeric": "numeric(5,2)"})
        assert error.value.why == "1.001 is no decimal128(5, 2)"


def test_a_value_that_cannot_be_stored_is_an_error(database: Database) -> None:
    make(database, ["int4"])
    for i, (kind, value) in enumerate(NO_VALUE):
        database.run(
            f"CREATE TABLE n{i} (c {kind})",
            f"ALTER TABLE n{i} REPLICA IDENTITY FULL",
            f"ALTER PUBLICATION p ADD TABLE n{i}",
            f"INSERT INTO n{i} VALUES (NULL), ('{value}')",
        )
    for i, (_, value) in enumerate(NO_VALUE):
        with pytest.raises(PublisherProblem, match=rf'column "c" of "public\.n{i}"'):
            copied(database, f"public.n{i}")
        with pytest.raises(PublisherProblem, match=rf'column "c" of "public\.n{i}"') as error:
            read(database, f"public.n{i}")
        assert error.value.why.startswith(value)
        assert f"--type public.n{i}.c=text" in error.value.fix
        found = read(database, f"public.n{i}", types={f"public.n{i}.c": "text"})
        assert found["c"].to_pylist() == [None, value]


def test_choices_are_checked(database: Database) -> None:
    make(database, ["int4"])
    for key, choice, said in [
        ("public.t.c0", "float", 'types["public.t.c0"] is "float"'),
        ("public.t.c0", "numeric(39,0)", 'types["public.t.c0"] is "numeric(39,0)"'),
        ("public.t.c9", "text", 'types names "public.t.c9"'),
        ("nothing", "text", 'types names "nothing"'),
        ("a b'; DROP TABLE t", "text", 'types names "a b\'; DROP TABLE t"'),
    ]:
        with pytest.raises(InvalidDefinition) as error:
            database.publisher(types={key: choice}).offer().require()
        assert error.value.what.startswith(said)
    with pytest.raises(PublisherProblem, match="without an equal"):
        database.publisher(types={"integer": "numeric(5,2)"}).offer().require()
