"""The documentation as a site: it builds strictly, so no link of it is dead and no page is lost."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pages import PROJECT

pytestmark = pytest.mark.process

PARTS = ["docs", "dagster_streamtables", "tests/README.md", "tests/coverage.py", "tests/compiler"]
PARTS += ["qa/README.md", "mkdocs.yml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE"]


def build(project: Path, site: Path) -> list[str]:
    """Build the site; what is wrong with it, line by line."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=300)
    problems = re.findall(r"^(?:WARNING|ERROR) +- +(.+(?:\n  .+)*)$", done.stderr, flags=re.M)
    return problems or [done.stderr] * (done.returncode != 0)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    problems = build(PROJECT, folder)
    assert not problems, (
        "the documentation does not build:\n  " + "\n  ".join(problems) + "\nCorrect the link, the "
        "heading that it names, or `nav` in mkdocs.yml, and look at the result: make docs"
    )
    return folder


def test_the_site_builds_strictly_and_has_every_page(site: Path) -> None:
    sources = {path.relative_to(PROJECT / "docs") for path in (PROJECT / "docs").rglob("*.md")}
    pages = {site / path.with_suffix("") / "index.html" for path in sources if path.stem != "index"}
    assert len(pages) > 20
    assert all(page.exists() for page in pages)
    assert "Write a query." in (site / "index.html").read_text()
    assert "dagster_streamtables.Lake.refresh" in (site / "api" / "index.html").read_text()
    assert not (site / "hooks.py").exists()


def test_what_has_a_role_in_the_tests_is_a_code_block_of_the_site(site: Path) -> None:
    guide = (PROJECT / "docs" / "guide.md").read_text()
    shown = (site / "guide" / "index.html").read_text().count('class="language-text highlight"')
    assert shown == guide.count("\n```text output\n") > 0
    assert not [page for page in site.rglob("*.html") if "```" in page.read_text()]


def test_the_site_fetches_nothing(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not re.findall(
            r"<(?:script|link|img)[^>]+(?:src|href)=\"https?://", page.read_text()
        )


def test_dead_links_and_pages_that_nobody_finds_are_told(tmp_path: Path) -> None:
    for part in PARTS:
        source, copy = PROJECT / part, tmp_path / part
        copy.parent.mkdir(exist_ok=True)
        shutil.copytree(source, copy) if source.is_dir() else shutil.copy(source, copy)
    (tmp_path / "docs" / "lost.md").write_text(
        "# Lost\n[a](nowhere.md) [b](guide.md#no-such-heading) [c](../README.md#nor-this-one)\n"
        "[d](../LICENCE)\n"
    )

    told = "\n".join(build(tmp_path, tmp_path / "site"))

    assert "lost.md" in told
    for dead in ("nowhere.md", "no-such-heading", "nor-this-one", "LICENCE"):
        assert dead in told
    assert "not included in the" in told  # the navigation
