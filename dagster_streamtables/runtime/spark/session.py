"""Spark sessions: a given one, one at an address, or one on the local server.

The runtime sends Spark only SQL text and local rows, so a classic session and one over Spark
Connect look the same to it. Only `open_session` distinguishes them.

Processes continue each other's sessions, whose first statement is then a second quicker. But a
killed process may leave a running statement, settings that name its commit, and views, each of
which holds a snapshot of a table in Spark's memory. See `take_over`.

Two kinds of settings are changed for some statements only:

- Those of our commits (`session_with`). If a user runs an INSERT in the same session with the
  transaction number of our MERGE, Delta stores that INSERT and skips the next one.
- Whether Spark compiles them (`choose_codegen`). A refresh of five small tables took 1.2 s
  interpreted and 1.6 s compiled. Over 1M rows, a whole query takes twice as long interpreted.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import logging
import os
import socket
import sys
import threading
import uuid
import warnings
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from filelock import Timeout

from dagster_streamtables.errors import EnvironmentProblem, LostSpark
from dagster_streamtables.runtime.spark.connect import is_connect
from dagster_streamtables.runtime.spark.environment import home, lock, variable
from dagster_streamtables.runtime.spark.jars import check_java, jars_setting
from dagster_streamtables.runtime.spark.local_server import ensure_server, key_of
from dagster_streamtables.runtime.spark.settings import (
    COMMIT_SETTINGS,
    ZONE,
    fit_older_server,
    read_as_usual,
    require_fitting,
    settings_for_now,
    spark_settings,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client import DefaultChannelBuilder


_USER = "streamtables"
_CLIENT = "pyspark.sql.connect.session"
_CONNECT_SECONDS = 5.0
_TRIES = 100

_here: weakref.WeakSet[SparkSession] = weakref.WeakSet()
_connected: weakref.WeakKeyDictionary[SparkSession, tuple[str, str | None]]
_connected = weakref.WeakKeyDictionary()
"""The address and the id of each session over Spark Connect."""
_taken: dict[SparkSession, contextlib.ExitStack] = {}
_sessions: dict[tuple[str, str | None], SparkSession] = {}
_opening = threading.RLock()


def open_session(
    spark: SparkSession | str | None = None,
    *,
    session_id: str | None = None,
    zone: str | None = None,
) -> SparkSession:
    """A Spark session that answers.

    Args:
        spark: A session, which is returned unchanged; an address (``sc://host:port`` of a Spark
            Connect server, or a master such as ``local[2]`` or ``spark://host:port`` for a
            classic session in this process); None for the address in ``STREAMTABLES_SPARK`` or,
            if that is not set, the local server.
        session_id: A UUID, ignored by classic sessions. Over Spark Connect, programs of one
            machine that pass the same one use one session, one after another; concurrently, each
            has its own.
        zone: The time zone of its statements; None for the session's own.

    Raises:
        EnvironmentProblem: Nothing answers at the address, the local server cannot start, or the
            given session has another time zone or reads SQL in another way.
    """
    if spark is not None and not isinstance(spark, str):
        require_fitting(spark, zone)
        return spark
    address = spark or variable("STREAMTABLES_SPARK")
    with _opening:
        if address and not address.startswith("sc://"):
            return _classic(address, zone)
        return _connect(address, session_id, zone) if address else _local(session_id, zone)


def shares_files(spark: SparkSession) -> bool:
    """Whether Spark reads files of this machine: it runs in this process, or is the local server.

    An address of this machine does not suffice, since it may be forwarded.
    """
    if is_connect(spark):
        return spark in _here
    return (spark.sparkContext.master or "").startswith("local")


def to_local(port: int, token: str, options: str) -> DefaultChannelBuilder:
    """The builder of a channel to the local server; `options` as in an address after ``/;``."""
    import grpc
    from pyspark.sql.connect.client import DefaultChannelBuilder

    class Local(DefaultChannelBuilder):
        def toChannel(self) -> grpc.Channel:
            # These credentials also ensure that the other end is on this machine.
            machine = grpc.local_channel_credentials(grpc.LocalConnectionType.LOCAL_TCP)
            key = grpc.access_token_call_credentials(token)
            both = grpc.composite_channel_credentials(machine, key)
            return self._secure_channel(self.endpoint, both)

    return Local(f"sc://127.0.0.1:{port}/;{options}")


def _local(session_id: str | None, zone: str | None) -> SparkSession:
    try:
        opened = _connect(_start_local_server(), session_id, zone)
    except EnvironmentProblem:
        # The server ended between the two calls; by now, its state file is deleted.
        opened = _connect(ensure_server(), session_id, zone)
    _here.add(opened)
    _forget_ended_servers(_connected[opened][0])
    return opened


def _forget_ended_servers(present: str) -> None:
    """Forget the sessions of local servers that ended; each server has another address."""
    for key, session in list(_sessions.items()):
        if session in _here and key[0] != present and not _listens(key[0]):
            del _sessions[key]
            _taken.pop(session).close()


def _start_local_server() -> str:
    """The address of the local server. While it starts, a thread imports Spark's client, which
    takes a second. This thread waits for it before any import of its own: of modules that import
    each other, one of two threads would see a part."""
    if _CLIENT in sys.modules:
        return ensure_server()
    importing = threading.Thread(target=_import_client, daemon=True)
    importing.start()
    try:
        return ensure_server()
    finally:
        importing.join()


def _import_client() -> None:
    with contextlib.suppress(ImportError):  # the import that needs it says so
        importlib.import_module("pyspark.sql")
        importlib.import_module(_CLIENT)


def _connect(address: str, session_id: str | None, zone: str | None) -> SparkSession:
    _knock(address)
    kept = _sessions.get((address, session_id))
    if kept is not None and not kept.client.is_closed and _is_alive(kept, address, zone):
        return kept
    if kept in _taken:
        _taken.pop(kept).close()
    for name in _names(session_id):
        with contextlib.ExitStack() as taken:
            try:  # the end of this process always frees the lock
                if name is not None:
                    taken.enter_context(lock("sessions", name, blocking=False))
            except Timeout:
                continue
            opened = _open(address, name)
            if _is_alive(opened, address, zone) and (name is None or take_over(opened)):
                read_as_usual(opened)
                fit_older_server(opened)
                _sessions[address, session_id] = opened
                _taken[opened] = taken.pop_all()
                return opened
    raise EnvironmentProblem(
        f"the Spark server at {_address_without_options(address)} ends every session at once",
        fix="check the server's log, and restart it",
    )


def _names(session_id: str | None) -> Iterator[str | None]:
    """The ids of a session to try on the server, in order.

    Another process or a statement of a killed one may use an id, and a server may refuse the id of
    an ended session.
    """
    for attempt in range(_TRIES):
        about = f"{socket.gethostname()}#{home()}#{attempt}"
        yield session_id and str(uuid.uuid5(uuid.UUID(session_id), about))


def _open(address: str, session_id: str | None) -> SparkSession:
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    # By default, errors of statements are also printed, as a line of JSON.
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    # The client also warns of the error of the last retry.
    warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")
    place, _, options = address.partition("/;")
    options = options or f"user_id={_USER}"
    options = options if session_id is None else f"{options};session_id={session_id}"
    key = key_of(address)
    if key is None:
        session = SparkSession.builder.remote(f"{place.rstrip('/')}/;{options}").create()
    else:
        os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"  # as `remote` does
        local: Any = ConnectSession.builder.channelBuilder(to_local(key.port, key.token, options))
        session = local.create()
    # A network or a server of others may come back within a minute; a local process that was
    # killed does not. By default, a statement waits for ten minutes.
    retries = 9 if key is None else 4
    session.client.set_retry_policies([DefaultPolicy(max_retries=retries, max_backoff=10_000)])
    _connected[session] = address, session_id
    atexit.unregister(_leave_all)
    atexit.register(_leave_all)  # so that it runs before what gRPC registered
    return session


def _leave_all() -> None:
    """End the client's part of all sessions when the program exits.

    By default, the client calls the server, for minutes if that no longer runs; and gRPC waits
    forever for its threads if a channel is closed after the interpreter has stopped them.
    """
    for session, (address, session_id) in list(_connected.items()):
        if session_id is None:
            with contextlib.suppress(EnvironmentProblem):
                _knock(address)
                session.stop()
        session.client.close()


def _is_alive(session: SparkSession, address: str, zone: str | None) -> bool:
    """Whether the server still has the session. Also sets its time zone, if one is given."""
    from pyspark.errors import PySparkException

    try:
        has = session.conf.get(ZONE)
        if zone is not None and has != zone:
            session.conf.set(ZONE, zone)
    except PySparkException as error:
        if "SESSION" in (error.getCondition() or ""):
            return False
        raise _no_answer(address, error) from error
    return True


def _listens(address: str) -> bool:
    try:
        _knock(address)
    except EnvironmentProblem:
        return False
    return True


def _knock(address: str) -> None:
    """Raise if nothing listens; Spark's client would retry for minutes."""
    parts = urlsplit(address)
    try:
        socket.create_connection((parts.hostname, parts.port or 15002), _CONNECT_SECONDS).close()
    except OSError as error:
        raise _no_answer(address, error) from error


def _address_without_options(address: str) -> str:
    """The address without its options, which may include a token."""
    return address.partition("/;")[0]


def _no_answer(address: str, error: Exception) -> EnvironmentProblem:
    if any(f"StatusCode.{code}" in str(error) for code in ("UNAUTHENTICATED", "PERMISSION_DENIED")):
        return EnvironmentProblem(
            f"the Spark server at {_address_without_options(address)} refuses this client",
            why=str(error),
            fix="put its token into the address, as in sc://host:443/;token=…; that of a local "
            "server is printed by `streamtables spark url`",
        )
    return LostSpark(
        f"no Spark Connect server answers at {_address_without_options(address)}",
        why=str(error),
        fix="start it, or correct the address; without an address, a local server is used",
    )


def _classic(master: str, zone: str | None) -> SparkSession:
    """One session for each time zone, shared by threads; all have one Spark context."""
    first = _first_classic(master)
    if zone is None or first.conf.get(ZONE) == zone:
        return first
    kept = _sessions.get((master, zone))
    if kept is None or kept.sparkContext._jsc is None:
        kept = _sessions[master, zone] = first.newSession()
        for name, value in spark_settings(master).items():
            if kept.conf.isModifiable(name):
                kept.conf.set(name, value)
        kept.conf.set(ZONE, zone)
    return kept


def _first_classic(master: str) -> SparkSession:
    from pyspark.sql import SparkSession

    kept = _sessions.get((master, None))
    if kept is not None and kept.sparkContext._jsc is not None:
        return kept
    _leave_connect_mode()
    os.environ["JAVA_HOME"] = str(check_java())
    builder = SparkSession.builder.master(master).appName("streamtables")
    for name, value in spark_settings(master).items():
        builder = builder.config(name, value)
    _sessions[master, None] = opened = builder.config("spark.jars", jars_setting()).getOrCreate()
    return opened


def _leave_connect_mode() -> None:
    """pyspark marks a process as one that uses Connect, and child processes inherit the mark."""
    if any(address.startswith("sc://") for address, _ in _sessions):
        raise EnvironmentProblem(
            "this process already uses Spark Connect",
            why="pyspark allows only one kind of session in a process",
            fix="use only Connect addresses, or open the classic session in another process",
        )
    os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)


VIEWS = "st_"


def take_over(session: SparkSession) -> bool:
    """Clear a session that no other process uses; False if a statement was still running in it.

    Such a session must not be used: a MERGE reads the settings when it commits, so with ours it
    would commit its own rows as our refresh.
    """
    if session.interruptAll():
        return False
    for name in (*COMMIT_SETTINGS, *_INTERPRETED):
        session.conf.unset(name)
    drop_views(session)
    return True


def drop_views(session: SparkSession) -> None:
    """Drop the views that refreshes keep in a session for later ones."""
    for row in session.sql(f"SHOW VIEWS LIKE '{VIEWS}*'").collect():
        session.catalog.dropTempView(row["viewName"])


FEW = 300_000
"""Number of rows at which both take about the same time."""
_INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_interpreting: weakref.WeakKeyDictionary[SparkSession, bool] = weakref.WeakKeyDictionary()


def choose_codegen(spark: SparkSession, rows: int | None) -> None:
    """Interpret the next statements of a session, or compile them.

    Ignores sessions that the caller opened. Two threads may choose differently for one session:
    the rows are the same either way. An expression that a condition guards may fail when it is
    interpreted; see `Inputs.compile`. `rows` is about the number that they read, if known.
    """
    if spark not in _taken:
        return
    interpret = rows is not None and rows <= FEW
    if _interpreting.get(spark, False) is interpret:
        return
    for name, value in _INTERPRETED.items():
        if interpret:
            spark.conf.set(name, value)
        else:
            spark.conf.unset(name)
    _interpreting[spark] = interpret


def is_interpreting(spark: SparkSession) -> bool:
    """Whether `choose_codegen` chose to interpret the statements of a session."""
    return _interpreting.get(spark, False)


_writing: weakref.WeakKeyDictionary[SparkSession, threading.Lock] = weakref.WeakKeyDictionary()


def writing(spark: SparkSession) -> threading.Lock:
    """Held while one of our sessions has other settings; several threads may use it."""
    return _writing.setdefault(spark, threading.Lock())


@contextmanager
def session_with(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session that has the settings until the end of a block.

    Yields:
        The session itself if this package opened it, else a clone with its views, functions and
        settings, which takes some 10 ms, and more for the first statement.
    """
    if spark in _taken:  # opened here, on a server, so that only this process uses it
        with writing(spark), settings_for_now(spark, settings):
            yield spark
        return
    clone = _clone(spark)
    try:
        for name, value in settings.items():
            clone.conf.set(name, value)
        yield clone
    finally:
        _end(clone)


def _clone(spark: SparkSession) -> SparkSession:
    from pyspark.sql import SparkSession

    of_any_kind: Any = spark
    if is_connect(spark):
        if not hasattr(of_any_kind, "cloneSession"):
            raise EnvironmentProblem(
                "a given session of Spark Connect 4.0 cannot be cloned",
                why="a refresh needs settings of its own, which it does not set on your session",
                fix="pass the address of the server instead, or install pyspark 4.1 or newer",
            )
        return of_any_kind.cloneSession()
    return SparkSession(spark.sparkContext, of_any_kind._jsparkSession.cloneSession())


def _end(clone: Any) -> None:
    if is_connect(clone):  # in this process, it ends once nothing refers to it
        clone.client.release_session()
        clone.client.close()
