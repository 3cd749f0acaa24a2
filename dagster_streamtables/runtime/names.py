"""Where tables are. The only module that knows how a name in a query becomes a place.

On the embedded default a name is a folder under one root, ``<root>/<schema>/<table>``, the layout
of dagster-deltalake, so that its IO manager and resource read the same tables. A name without a
schema is in the schema ``public``, as there. A path (``delta.`/data/orders` ``) is itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

DEFAULT_SCHEMA = "public"
_PATH = re.compile(r"delta\.`(?P<path>.+)`", re.IGNORECASE)


@dataclass(frozen=True)
class Names:
    root: str
    """A folder, or the URI of one in an object store."""

    def location(self, name: str) -> str:
        """The place of a table, as a path or a URI.

        >>> lake = Names("/lake")
        >>> lake.location("sales.orders"), lake.location("orders"), lake.location("delta.`/x/y`")
        ('/lake/sales/orders', '/lake/public/orders', '/x/y')
        """
        path = _PATH.fullmatch(name)
        if path:
            return path["path"]
        parts = name.split(".")
        if len(parts) == 1:
            parts = [DEFAULT_SCHEMA, *parts]
        return "/".join([self.root.rstrip("/"), *parts])
