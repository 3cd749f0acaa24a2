"""Who may read what, and what is answered to those who may not, or ask wrongly."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import psutil
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from typer.testing import CliRunner

from dagster_streamtables import Lake
from dagster_streamtables.changes.subscription import Subscription
from dagster_streamtables.cli import app
from dagster_streamtables.errors import RefusedOperation
from dagster_streamtables.serve.access_policy import (
    Limits,
    ServerConfig,
    hosts_of,
    relations_of,
    require_token,
)
from dagster_streamtables.serve.application import application
from dagster_streamtables.serve.event_feed import EventFeed, SharedReaders
from dagster_streamtables.serve.request import RelationRequest, Start
from serve.conftest import CHANGES, PATIENCE, Copy, History, Serve

pytestmark = pytest.mark.process

TOKEN = "a token of enough letters"


class Client:
    """Asks the application itself, of which each stream must end."""

    def __init__(self, offer: ServerConfig, runner: asyncio.Runner) -> None:
        self._transport = httpx.ASGITransport(runner.run(_made(offer)))
        self._offer, self._runner = offer, runner

    def but(self, **values: Any) -> Client:
        """Of another offer."""
        return Client(replace(self._offer, **values), self._runner)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self._runner.run(self._ask("GET", path, **options))

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self._runner.run(self._ask("POST", path, **options))

    async def _ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        base = "http://testserver"
        async with httpx.AsyncClient(transport=self._transport, base_url=base) as client:
            return await client.request(method, path, **options)


async def _made(offer: ServerConfig) -> Any:
    return application(offer)


@pytest.fixture
def client(history: History, tmp_path: Path) -> Iterator[Client]:
    for _ in range(4):
        history.commit()
    relations = {"mart.t": "mart.t", "gone": "mart.gone"}
    offer = ServerConfig(Lake(str(tmp_path / "lake")), relations, hosts=frozenset({"testserver"}))
    with asyncio.Runner() as runner:
        yield Client(offer, runner)


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("as_of=soon", "as_of='soon' is not a time"),
        ("as_of=3&up_to=2", "the subscription would end at 2, before it begins at 3"),
        ("snapshot=perhaps", 'parameter "snapshot" is "perhaps"'),
        ("as_of=1&as_of=2", 'parameter "as_of" is given twice'),
        ("color=red", 'parameter "color" is not known'),
        ("envelope=none", 'parameter "envelope" is "none"'),
        ("key=k", "a key is given without an envelope"),
        ("envelope=upsert", "the key of an envelope has no column"),
        ("envelope=upsert&key=nope", 'column "nope" does not exist'),
        ("envelope=upsert&key=k&order_by=v", "an envelope and an order cannot be combined"),
        ("envelope=upsert&key=k,k", 'column "k" is in the key more than once'),
        ("order_by=k%2B1", 'invalid ORDER BY within a timestamp: "k+1"'),
        ("resume=x", "the resume token is damaged"),
        ("clock=sun", 'parameter "clock" is "sun"'),
    ],
)
def test_what_is_asked_wrongly_is_told(query: str, what: str, client: Client) -> None:
    answer = client.get(f"{CHANGES}?{query}")
    assert (answer.status_code, answer.json()["what"]) == (400, what)
    assert set(answer.json()) == {"what", "why", "fix"}, "no place on the server's disk"


def test_what_is_not_there_is_told(client: Client) -> None:
    for path in ("/nowhere", "/relations/other", "/relations/other/changes"):
        assert client.get(path).status_code == 404
    assert client.get("/relations/gone/changes").status_code == 404
    assert client.get(f"{CHANGES}?as_of=-1").status_code == 400
    assert client.post(CHANGES).status_code == 405


def test_a_lost_history_is_gone(client: Client, history: History) -> None:
    """With 410 an EventSource stops; by choice it begins again with a snapshot."""
    first = client.get(f"{CHANGES}?as_of=1&up_to=2").text
    token = first.partition("id: ")[2].partition("\n")[0]
    history.table.overwrite((100, "new"))
    history.table.delta.vacuum(0, dry_run=False, enforce_retention_duration=False)

    assert client.get(f"{CHANGES}?as_of=1").status_code == 410
    lost = client.get(f"{CHANGES}?up_to=9", headers={"last-event-id": token})
    assert (lost.status_code, "is no longer available" in lost.json()["what"]) == (410, True)
    end = history.table.version + 1
    path = f"{CHANGES}?on_history_lost=resnapshot&up_to={end}"
    again = client.get(path, headers={"last-event-id": token}).text
    assert "event: reset" in again
    assert '"k":100' in again


def test_programs_get_json_lines_or_arrow(client: Client) -> None:
    path = f"{CHANGES}?as_of=1&up_to=3"
    lines = client.get(path, headers={"accept": "application/x-ndjson"}).text.splitlines()
    assert lines[0] == '{"_timestamp":1,"_diff":1,"k":1,"v":"row 1"}'
    arrow = client.get(path, headers={"accept": "application/vnd.apache.arrow.stream"})
    assert pa.ipc.open_stream(arrow.content).read_all().num_rows == len(lines)


def test_a_change_tells_how_long_after_its_commit_it_was_read(
    client: Client, history: History
) -> None:
    committed = history.committed()
    began = time.time()
    text = client.get(f"{CHANGES}?as_of=1&up_to=4").text
    snapshot, *changes = text.split("event: change")
    assert "event: lag" not in snapshot
    for version, change in zip((2, 3), changes, strict=True):
        lag = float(change.partition("event: lag\ndata: ")[2].partition("\n")[0])
        assert began - 0.001 <= committed[version] + lag <= time.time() + 0.001


def test_rows_come_with_the_time_of_the_last_commit_that_changed_some(
    client: Client, history: History
) -> None:
    while history.last % 7 != 6:
        history.commit()
    version, table = history.last, history.table
    table.compact()
    table.delta.alter.set_table_properties({"delta.logRetentionDuration": "interval 60 days"})
    newest = table.version
    assert newest == version + 2, "neither changes rows"
    made = history.committed()

    def told(path: str) -> list[float]:
        _, *found = client.get(f"{CHANGES}?{path}").text.split("event: committed\ndata: ")
        return [float(each.partition("\n")[0]) for each in found]

    assert told(f"as_of={newest}&up_to={newest + 1}") == [made[version]], "a snapshot"
    assert told("as_of=1&snapshot=false&up_to=4") == [made[2], made[3]], "changes"


def test_no_text_of_a_row_breaks_out_of_its_event(client: Client, history: History) -> None:
    nasty = "\n\nevent: reset\r\ndata: 1\r\u2028\x00</script>"
    history.table.insert((7, nasty))
    version = history.table.version
    path = f"{CHANGES}?as_of={version - 1}&snapshot=false&up_to={version + 1}"
    text = client.get(path).text
    assert text.count("event: ") == 4, "the change, the words within its data, the lag and the time"
    assert "\nevent: reset" not in text
    assert "\r" not in text


def test_queries_are_taken_where_that_is_allowed(client: Client) -> None:
    given = {"query": "SELECT * FROM mart.t", "as_of": 0, "up_to": 2}
    assert client.post("/subscribe", json=given).status_code == 403
    client = client.but(queries=True)
    for body in (b"[1]", b"{", b"{}", b'{"query": ["a", "b"]}', b'{"query": "DROP TABLE x"}'):
        assert client.post("/subscribe", content=body).status_code == 400, body
    assert client.post("/subscribe", content=b"x" * 70_000).status_code == 413


def test_a_token_is_asked_of_everybody(client: Client) -> None:
    client = client.but(token=TOKEN)
    for path in ("/", "/relations", "/relations/mart.t", CHANGES, "/nowhere"):
        assert client.get(path).status_code == 401
    for wrong in ("", "Bearer", f"Basic {TOKEN}", f"Bearer {TOKEN[:-1]}", "Bearer ü"):
        headers = [(b"authorization", wrong.encode())]
        assert client.get("/relations", headers=headers).status_code == 401
    assert client.get("/relations?token=wrong").status_code == 401
    assert client.get("/relations", headers={"authorization": f"Bearer {TOKEN}"}).is_success
    assert client.get("/relations", params={"token": TOKEN}).is_success
    assert client.get(f"{CHANGES}?as_of=0&up_to=2&token={TOKEN}").is_success


def test_pages_of_other_sites_may_not_read(client: Client) -> None:
    assert client.get("/relations", headers={"host": "evil.example"}).status_code == 403
    foreign = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"}
    assert client.get("/relations", headers=foreign).status_code == 403
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get("/", headers=link).is_success


def test_other_machines_need_a_token() -> None:
    for host in ("0.0.0.0", "192.168.1.2", "::", "example.org"):
        assert hosts_of(host) is None
        with pytest.raises(RefusedOperation, match="without a token"):
            require_token(host, None)
        require_token(host, TOKEN)
    with pytest.raises(RefusedOperation, match="too short"):
        require_token("127.0.0.1", "short")
    require_token("::1", None)


@pytest.mark.parametrize("name", ["a/b=mart.t", "a b=mart.t", "SELECT 1", "=x", "a?=b", ""])
def test_a_name_that_is_no_address_is_refused(name: str) -> None:
    with pytest.raises(RefusedOperation, match="cannot be the name"):
        relations_of([name])


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ([], "no relation to serve is given"),
        (["--relation", "a", "--relation", "a"], 'two served relations are called "a"'),
        (["--relation", "a", "--host", "0.0.0.0"], "without a token, 0.0.0.0 is not served"),
        (["--relation", "a", "--token-file", "no/where"], "the token cannot be read from"),
    ],
)
def test_a_server_that_may_not_run_says_why(options: list[str], what: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["serve", "--root", str(tmp_path), *options])
    assert (done.exit_code, done.stderr.startswith(what)) == (1, True), done.stderr


def test_the_token_comes_from_the_environment(history: History, serve: Serve) -> None:
    served = serve(STREAMTABLES_SERVE_TOKEN=TOKEN)
    assert httpx.get(f"{served.address}/relations").status_code == 401
    with served.events(f"{CHANGES}?as_of=0&token={TOKEN}") as events:
        assert next(events).kind == "reset"


def test_no_more_readers_than_allowed(history: History, serve: Serve) -> None:
    history.commit()
    served = serve("--relation", "mart.t", "--max-connections", "2")
    with served.events(CHANGES) as first, served.events(CHANGES) as second:
        assert next(first).kind == next(second).kind == "reset"
        refused = httpx.get(f"{served.address}{CHANGES}")
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
        assert httpx.get(f"{served.address}/relations").is_success
    until = time.monotonic() + 30
    while httpx.get(f"{served.address}{CHANGES}?as_of=0&up_to=1").status_code == 429:
        assert time.monotonic() < until, "who has gone still counts"


def test_a_reader_who_takes_nothing_costs_nothing(history: History, serve: Serve) -> None:
    """It is not read for, and then disconnected; the others go on."""
    for _ in range(6):
        rows = pa.table({"k": range(200_000), "v": ["long enough to be much" * 4] * 200_000})
        write_deltalake(history.location, rows, mode="append")
    served = serve(
        "--relation", "mart.t", "--max-seconds-unread", "3", "--max-rows-per-second", "0"
    )
    assert served.process is not None
    process = psutil.Process(served.process.pid)
    path = f"{CHANGES}?as_of=0&snapshot=false"
    with served.events(path) as events:  # warm
        next(events)
    before = process.memory_info().rss
    with socket.create_connection(("127.0.0.1", served.port)) as lazy:
        lazy.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        until = time.monotonic() + 60
        while any(c.status == "ESTABLISHED" for c in process.net_connections("tcp")):
            grown = process.memory_info().rss - before
            assert grown < 150e6, f"{grown / 1e6:.0f} MB for somebody who does not read"
            assert time.monotonic() < until, "it is still connected"
            time.sleep(0.2)
    with served.events(f"{CHANGES}?as_of=0") as events:
        assert next(events).kind == "reset"


def test_a_stream_ends_where_the_server_stops(history: History, serve: Serve) -> None:
    served, copy = serve(), Copy()
    history.commit()
    with served.events(f"{CHANGES}?as_of=0") as events:
        copy.take(next(events))
        assert "Traceback" not in served.stop()
        for heard in events:
            copy.take(heard)
    assert served.process is not None
    assert served.process.returncode is not None


@pytest.mark.parametrize("reader", ["feed", "shared"])
def test_a_subscription_that_nobody_takes_is_closed(
    reader: str, history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reader goes away while a thread still opens it."""
    begun, cancelled, opened = threading.Event(), threading.Event(), list[Subscription]()
    subscribe = RelationRequest.subscribe

    def slow(self: RelationRequest, offer: ServerConfig, start: Start) -> Subscription:
        begun.set()
        assert cancelled.wait(PATIENCE)
        opened.append(subscribe(self, offer, start))
        return opened[0]

    monkeypatch.setattr(RelationRequest, "subscribe", slow)

    async def leave() -> None:
        offer = ServerConfig(Lake(str(tmp_path / "lake")), {})
        readers, asked = SharedReaders(offer), RelationRequest("mart.t")
        if reader == "shared":
            shared = readers.join(asked)
            await asyncio.to_thread(begun.wait, PATIENCE)
            readers.leave(asked, shared)
        else:
            opening = asyncio.create_task(EventFeed(offer, readers, asked, Start()).open())
            await asyncio.to_thread(begun.wait, PATIENCE)
            opening.cancel()
        await asyncio.sleep(0)
        cancelled.set()

    asyncio.run(leave())
    until = time.monotonic() + PATIENCE
    while not (opened and opened[0].ended):
        assert time.monotonic() < until, "it is still open"
        time.sleep(0.01)


def test_limits_bound_the_batch() -> None:
    """So that a pause for the sake of a limit is never longer than a second or two."""
    assert Limits(rows_per_second=10).batch_rows == 10
    assert Limits(rows_per_second=None).batch_rows == 8192
