"""The page that shows a relation changing: one file, and what a browser may do with it."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from pathlib import Path

PAGE = (Path(__file__).parent / "page.html").read_text(encoding="utf-8")
"""It knows nothing: its script asks for everything, and shows it as text."""


def _sources(tag: str) -> str:
    """The hashes of the page's own scripts or styles, so that no other is run."""
    found = re.findall(rf"<{tag}>(.*?)</{tag}>", PAGE, flags=re.S)
    digests = (hashlib.sha256(each.encode()).digest() for each in found)
    return " ".join(f"'sha256-{b64encode(digest).decode()}'" for digest in digests)


CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        f"script-src {_sources('script')}",
        f"style-src {_sources('style')}",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
