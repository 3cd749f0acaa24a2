"""Where tables are. The only module that knows how a name in a query becomes a place.

On the embedded default a name is a folder under one root, ``<root>/<schema>/<table>``, the layout
of dagster-deltalake, so that its IO manager and resource read the same tables. A name without a
schema is in the schema ``public``, as there. A path (``delta.`/data/orders` ``) is itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

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

    def tables(self, storage_options: Mapping[str, str] | None = None) -> Iterator[str]:
        """The names of the Delta tables below the root, at whatever depth."""
        yield from _tables(files_below(self.root, storage_options), ())


def files_below(place: str, storage_options: Mapping[str, str] | None) -> Any:
    """The files below a folder or URI, as a file system of pyarrow whose root it is."""
    import pyarrow.fs
    from deltalake.fs import DeltaStorageHandler

    return pyarrow.fs.PyFileSystem(DeltaStorageHandler(place, dict(storage_options or {})))


def _tables(files: Any, parts: tuple[str, ...]) -> Iterator[str]:
    import pyarrow.fs

    selector = pyarrow.fs.FileSelector("/".join(parts), allow_not_found=True)
    listed = files.get_file_info(selector)
    folders = [each.base_name for each in listed if each.type is pyarrow.fs.FileType.Directory]
    if "_delta_log" in folders:
        short = len(parts) == 2 and parts[0] == DEFAULT_SCHEMA
        yield parts[1] if short else ".".join(parts)
        return
    for folder in folders:
        if folder.startswith(("_", ".")):  # nobody's tables: controls, and what is being deleted
            continue
        yield from _tables(files, (*parts, folder))
