"""Real faults of a machine, each there for the length of a `with` block."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil
import pytest

from dagster_streamtables.runtime.spark.local_server import server_status

_NOBODY = 65534


@contextmanager
def kept_aside(folder: Path) -> Iterator[None]:
    """Whatever happens to a folder is undone."""
    aside = folder.with_name(f"{folder.name}.aside")
    shutil.copytree(folder, aside)
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        aside.rename(folder)


@contextmanager
def no_large_files(limit: int) -> Iterator[None]:
    """Neither this process nor Spark's server can make a file longer than so many bytes.

    Writing fails with EFBIG where a full disk says ENOSPC; unlike that it needs no privilege.
    """
    server = server_status()
    assert server is not None
    spark = psutil.Process(server.pid)
    ours, theirs = resource.getrlimit(resource.RLIMIT_FSIZE), spark.rlimit(psutil.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, ours[1]))
    spark.rlimit(psutil.RLIMIT_FSIZE, (limit, theirs[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, ours)
        spark.rlimit(psutil.RLIMIT_FSIZE, theirs)


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """A file system of its own at a folder."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    if os.geteuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small disk can be mounted by root only")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@contextmanager
def filled(folder: Path) -> Iterator[None]:
    """Not a byte is left on the disk of a folder."""
    filler = folder / "filler"
    file = os.open(filler, os.O_CREAT | os.O_WRONLY)
    try:
        while True:
            os.write(file, bytes(4096))
    except OSError:
        os.close(file)
    try:
        yield
    finally:
        filler.unlink()


@contextmanager
def no_writing(folder: Path) -> Iterator[None]:
    """Nobody may add a file to a folder, this process or Spark."""
    if os.geteuid():
        mode = folder.stat().st_mode
        folder.chmod(0o500)
        undo = ["chmod", f"{mode & 0o777:o}", str(folder)]
    else:  # root may do everything, but to what is immutable
        if subprocess.run(["chattr", "+i", str(folder)], capture_output=True).returncode:
            pytest.skip("root is stopped by immutable folders only, and this disk has none")
        undo = ["chattr", "-i", str(folder)]
    try:
        yield
    finally:
        subprocess.run(undo, check=True)


@contextmanager
def allowing(mode: int, folder: Path) -> Iterator[None]:
    """This process may do with a folder what a mode says; root becomes somebody else for that time,
    who may look into those above."""
    user, before = os.geteuid(), folder.stat().st_mode
    for each in () if user else folder.parents:
        # They stay open: to close them would close them to another process of the tests.
        each.chmod(each.stat().st_mode | 0o555)
    folder.chmod(mode)
    if not user:
        os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)
        folder.chmod(before)


no_reading = partial(allowing, 0)
read_only = partial(allowing, 0o555)
