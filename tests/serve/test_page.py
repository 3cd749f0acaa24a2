"""The live page: what a browser may do with it, and, where there is a browser, what it shows."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import httpx
import pytest
from deltalake import DeltaTable

from dagster_streamtables.serve.application import CONTENT_SECURITY_POLICY, PAGE
from serve.conftest import History, Serve

pytestmark = pytest.mark.process

CHROMIUM = shutil.which("chromium")
HOSTILE = "<img src=x onerror=document.title='owned'>"
NAME = '"><script>x<b>'


def test_it_loads_nothing_and_makes_no_html_of_what_it_shows() -> None:
    assert "http:" not in PAGE and "https:" not in PAGE and "src=" not in PAGE
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert word not in PAGE
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert CONTENT_SECURITY_POLICY.startswith("default-src 'none'; script-src 'sha256-")


def test_it_is_the_same_whatever_is_served(history: History, serve: Serve) -> None:
    served = serve("--relation", f"{NAME}=mart.t")
    page = httpx.get(f"{served.address}/relations/%22%3E%3Cscript%3Ex%3Cb%3E")
    assert page.text == PAGE
    assert page.headers["content-security-policy"] == CONTENT_SECURITY_POLICY


def date_back(location: str, seconds: float) -> None:
    """Make the newest commit of a table older."""
    path = Path(location, "_delta_log", f"{DeltaTable(location).version():020}.json")
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for action in actions:
        if "commitInfo" in action:
            action["commitInfo"]["timestamp"] -= int(1000 * seconds)
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")
def test_in_a_browser(history: History, serve: Serve) -> None:
    """Hostile text is text; a large number keeps its digits; nothing is missing after the server
    was gone. STREAMTABLES_SCREENSHOTS names a folder for pictures."""
    driver = pytest.importorskip("playwright.sync_api")
    history.table.insert((2**60 + 1, HOSTILE))
    date_back(history.location, seconds=20 * 60)
    served = serve("--relation", "mart.t", "--relation", f"{NAME}=mart.t")
    with driver.sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu", "--no-first-run"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        page = browser.new_page(color_scheme="dark")
        page.set_default_timeout(60_000)
        page.goto(served.address)
        page.get_by_text(NAME, exact=True).click()
        page.get_by_text(HOSTILE).wait_for()
        page.get_by_text(str(2**60 + 1)).wait_for()
        page.get_by_text("20 min ago", exact=True).wait_for()
        served.kill()
        page.get_by_text("reconnecting").wait_for()
        for _ in range(8):
            history.commit()
        served.start()
        page.get_by_text("row 8", exact=True).wait_for()
        page.wait_for_timeout(2500)  # until what went is gone
        shown = page.locator("#body tr td:last-child").all_inner_texts()
        assert sum(map(int, shown)) == DeltaTable(history.location).to_pyarrow_table().num_rows
        assert page.inner_text("#reconnects") == "1"
        assert page.title() == NAME
        if folder := os.environ.get("STREAMTABLES_SCREENSHOTS"):
            page.screenshot(path=str(Path(folder) / "live.png"))
        browser.close()
