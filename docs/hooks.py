"""What MkDocs is told beyond mkdocs.yml.

Some pages lie where GitHub looks for them, outside of `docs/`: they are made part of the site, and
links to them are rewritten. The first line of a code block names its role for the tests, as in
```` ```sql change ````, which Markdown extensions take for no code block at all. The page of
constructs and their cases is generated.
"""

from __future__ import annotations

import os.path
import re
import sys
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "LICENSE": "license.md",
    "tests/README.md": "tests.md",
    "qa/README.md": "qa.md",
}
"""File of the repository → page of the site; all others are in docs/."""

_LINK = re.compile(r"(?<=\]\()(?P<target>[^()#\s:]+)(?=[)#])")
_FENCE = re.compile(r"^```(?P<language>\w+) (?P<role>[^\n`]+)$", flags=re.M)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path, page in PAGES.items():
        text = (ROOT / path).read_text()
        if not path.endswith(".md"):
            text = f"# {path.capitalize()}\n\n```text\n{text}```\n"
        files.append(File.generated(config, page, content=text))
    # The tests import one another as pytest lets them.
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    from tests.coverage import page as coverage

    files.append(File.generated(config, "coverage.md", content=coverage()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    source = {site: path for path, site in PAGES.items()}.get(
        page.file.src_uri, f"docs/{page.file.src_uri}"
    )
    markdown = _LINK.sub(lambda link: _on_site(link["target"], source, page), markdown)
    return _FENCE.sub(lambda fence: f"```{fence['language']}", markdown)


def _on_site(target: str, source: str, page: Page) -> str:
    """A link of a file of the repository as a link of its page."""
    path = os.path.normpath(PurePosixPath(source).parent / target)
    site = PAGES.get(path, path.removeprefix("docs/"))
    return os.path.relpath(site, PurePosixPath(page.file.src_uri).parent)
