"""The class archive of the local server: class data sharing for the classes of Spark and Delta.

A start loads and verifies 20,000 classes. From an archive Java maps them instead, which halves the
work until the first row. The first server of a folder lists the classes that it loads; later, when
it loads no more, its supervisor makes the archive of them, at the lowest priority; later servers
start with it.

Java itself checks that an archive fits: its own build, and path, size and time of each JAR. If one
does not fit, it loads the classes as ever. The name of an archive has a hash of the same, so that
another one is made then.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dagster_streamtables.runtime.spark import class_dump
from dagster_streamtables.runtime.spark.environment import memory_bytes, variable
from dagster_streamtables.runtime.spark.settings import driver_memory

_WIDE_POINTERS = 32 * 2**30
"""From this heap on, Java lays out its objects in another way."""


@dataclass(frozen=True)
class ClassArchive:
    """The files of one archive, which need not exist."""

    folder: Path
    key: str

    @property
    def archive(self) -> Path:
        return self.folder / f"{self.key}.jsa"

    @property
    def classes(self) -> Path:
        """The names of the classes that a server has loaded."""
        return self.folder / f"{self.key}.classlist"

    @property
    def failure(self) -> Path:
        """Why the archive could not be made; it is not tried again."""
        return class_dump.failure_of(self.archive)

    def java_options(self) -> list[str]:
        """Options that use the archive, or list the classes for it."""
        if self.archive.is_file():
            return [f"-XX:SharedArchiveFile={self.archive}"]
        if self.failure.is_file():
            return []
        self.folder.mkdir(mode=0o700, exist_ok=True)
        return [f"-XX:DumpLoadedClassList={self.classes}"]

    def making(self) -> list[str]:
        """The command that makes the archive beside a server, without the server's process id at
        its end; empty if there is one, or none can be made."""
        if self.archive.is_file() or self.failure.is_file():
            return []
        return [sys.executable, "-P", class_dump.__file__, str(self.classes), str(self.archive)]

    def discard(self) -> bool:
        """Delete the archive. Returns whether there was one."""
        was = self.archive.is_file()
        self.archive.unlink(missing_ok=True)
        return was


def class_archive(folder: Path, java: Path, jars: Sequence[Path]) -> ClassArchive | None:
    """That of the server of a folder, for a Java and all JARs; None if it should have none."""
    if not variable("STREAMTABLES_CLASS_ARCHIVE"):
        return None
    wide = memory_bytes(driver_memory()) >= _WIDE_POINTERS
    about = [str(wide), os.environ.get("SPARK_CONF_DIR", ""), *_stamps([*_java(java), *jars])]
    key = hashlib.sha256("\n".join(about).encode()).hexdigest()[:16]
    return ClassArchive(folder / "classes", key)


def _java(folder: Path) -> Iterator[Path]:
    for place in ("lib/server/libjvm.so", "lib/server/libjvm.dylib", "bin/java"):
        if (folder / place).is_file():
            yield folder / place


def _stamps(files: Sequence[Path]) -> Iterator[str]:
    for file in files:
        about = file.stat() if file.exists() else None
        yield f"{file} {about and (about.st_size, about.st_mtime_ns)}"
