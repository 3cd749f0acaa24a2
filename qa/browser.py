"""The demo in a real browser, as a new user would go through it.

    python -m qa.browser [--screenshots FOLDER] [--chromium /usr/bin/chromium]

Opens the graph, materializes a table and looks at what it did, breaks a source and repairs it, and
damages a table so that its check fails. Each step waits for what a user must see there, and fails
if it does not come. It needs Chromium and `pip install playwright`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from deltalake import DeltaTable
from rich.console import Console

from dagster_streamtables import Lake
from dagster_streamtables.orchestration.instance.dagster_runs import SENSOR_TAG
from example_defs.demo import PROJECT, answers

if TYPE_CHECKING:
    from playwright.sync_api import Page  # pyright: ignore[reportMissingImports]

CONSOLE = Console(soft_wrap=True, highlight=False)
LAKE = PROJECT / ".demo/lake"
LOCATION = "flights_of_2013"
PORT = 3210
ADDRESS = f"http://127.0.0.1:{PORT}"
_BROWSER = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_PATIENCE = 180.0
"""Seconds for what a run has to do first; the first one starts Spark's code paths."""


def main(screenshots: Path | None = None, chromium: str = "/usr/bin/chromium") -> None:
    """Go through the demo.

    Args:
        screenshots: A folder for a picture of each step.
        chromium: The browser.
    """
    folder = screenshots or Path(tempfile.mkdtemp(prefix="streamtables-browser-"))
    folder.mkdir(parents=True, exist_ok=True)
    with _demo(), _page(chromium) as page:
        tour = Tour(page, folder)
        tour.graph()
        tour.table()
        tour.materialize()
        tour.broken_source()
        tour.failing_check()
        tour.whole_graph()
    CONSOLE.print(f"pictures: {folder}")


@dataclass
class Tour:
    page: Page
    folder: Path

    def graph(self) -> None:
        self._open(f"/locations/{LOCATION}/asset-groups/stream_tables")
        self._see("carrier_days", "cancellations", "plane_use")

    def table(self) -> None:
        """The asset, fresh by its policy, its query, its columns and where they come from."""
        self._open("/assets/ops/flights")
        self._see("Latest materialization", "Every flight with its airline's name", "flight_id")
        self._see_in_the_end("Passing", "Fails if more than 5 minutes")
        self._picture("asset")

    def materialize(self) -> None:
        """Materialize a table by hand; what it did, and why; the plots."""
        self._open("/assets/delay/carrier_days")
        self._materialize()
        self._open("/assets/delay/carrier_days?view=events")
        self._see_in_the_end("streamtables/action", "streamtables/reason")
        self._picture("materialization")
        self._open("/assets/delay/carrier_days")
        self.page.get_by_role("button", name="Plots").first.click()
        self._see("streamtables/seconds")
        self.page.get_by_text("dagster/row_count").first.scroll_into_view_if_needed()
        self._picture("plots")

    def broken_source(self) -> None:
        """A source whose log is gone: the message on the failed step; then it is back."""
        log = LAKE / "air/planes/_delta_log"
        log.rename(log.with_name("away"))
        try:
            self._open("/assets/fleet/plane_use")
            run = self._materialize()
            self._open(f"/runs/{run}")
            self._see_in_the_end(
                "RUN_FAILURE", 'source "air.planes" is not a Delta table', "fix: create it"
            )
            self._picture("failure")
            assert "org.apache.spark" not in self.page.inner_text("body")
        finally:
            log.with_name("away").rename(log)
        self._open("/assets/fleet/plane_use")
        run = self._materialize()
        self._open(f"/runs/{run}")
        self._see_in_the_end("RUN_SUCCESS")
        self._picture("recovered")

    def failing_check(self) -> None:
        """Rows that somebody deleted are shown by the check; a refresh mends the table."""
        controls = Lake(str(LAKE)).controls
        controls.suspend("delay.carrier_days", "the worker would mend it at once")
        DeltaTable(LAKE / "delay/carrier_days").delete("carrier = 'AA'")
        page = "/assets/delay/carrier_days?view=checks&checkDetail=equals_recomputation"
        self._open(page)
        self.page.get_by_text("Execute", exact=True).first.click()
        self._see_in_the_end("Rows missing", "__difference")
        self._picture("check")
        controls.resume("delay.carrier_days")
        self._open("/assets/delay/carrier_days")
        self._materialize()
        self._open(page)
        self._see_in_the_end("The table equals its recomputation.")
        self._picture("mended")

    def whole_graph(self) -> None:
        """The graph again, when every table is there."""
        self.page.set_viewport_size({"width": 1700, "height": 1150})
        self.graph()
        self._see("Materialized")
        self.page.wait_for_timeout(10_000)  # until it has placed all of them
        self._picture("graph")

    def _materialize(self) -> str:
        """Click, and wait until the run is over; its id."""
        begin = datetime.now(UTC)
        self.page.get_by_role("button", name="Materialize").first.click()
        return _finished_run(begin)

    def _open(self, path: str) -> None:
        self.page.goto(f"{ADDRESS}{path}", wait_until="domcontentloaded")

    def _see(self, *texts: str) -> None:
        for text in texts:
            self.page.get_by_text(text).first.wait_for()

    def _see_in_the_end(self, *texts: str) -> None:
        """What may not be there before the page is loaded again."""
        until = time.monotonic() + _PATIENCE
        while True:
            body = self.page.inner_text("body")
            missing = [text for text in texts if text not in body]
            if not missing:
                return
            if time.monotonic() > until:
                self._picture("missing")
                raise AssertionError(f"{missing} is not on {self.page.url}")
            self.page.wait_for_timeout(5000)
            self.page.reload(wait_until="domcontentloaded")
            self.page.wait_for_timeout(5000)

    def _picture(self, name: str) -> None:
        self.page.wait_for_timeout(1500)  # until what moves stands still
        self.page.screenshot(path=str(self.folder / f"{name}.png"))
        CONSOLE.print(f"{name}: seen")


def _finished_run(begin: datetime) -> str:
    """The id of the run that was launched by hand since then, when it is over."""
    import dagster as dg

    os.environ["DAGSTER_HOME"] = str(PROJECT / ".demo/dagster")
    with dg.DagsterInstance.get() as instance:
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            records = instance.get_run_records(dg.RunsFilter(created_after=begin))
            for run in (record.dagster_run for record in records):
                if run.is_finished and SENSOR_TAG not in run.tags:
                    return run.run_id
            time.sleep(1)
    raise AssertionError("no run was launched, or it does not end")


@contextmanager
def _demo() -> Iterator[None]:
    """The demo with its first days, and a replay that stands still."""
    command = [sys.executable, "-m", "example_defs.demo", "--fresh", "--start", "2013-02-01"]
    demo = subprocess.Popen([*command, "--pace", "86400", "--port", str(PORT)], cwd=PROJECT)
    try:
        until = time.monotonic() + 2 * _PATIENCE
        while not answers(ADDRESS):
            assert demo.poll() is None, "the demo ended"
            assert time.monotonic() < until, "the demo does not answer"
            time.sleep(1)
        yield
    finally:
        demo.send_signal(signal.SIGTERM)
        demo.wait(_PATIENCE)
        shutil.rmtree(PROJECT / ".demo", ignore_errors=True)


@contextmanager
def _page(chromium: str) -> Iterator[Page]:
    from playwright.sync_api import sync_playwright  # pyright: ignore[reportMissingImports]

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_BROWSER)
        try:
            page = browser.new_page(viewport={"width": 1500, "height": 950})
            page.set_default_timeout(_PATIENCE * 1000)
            yield page
        finally:
            browser.close()


if __name__ == "__main__":
    typer.run(main)
