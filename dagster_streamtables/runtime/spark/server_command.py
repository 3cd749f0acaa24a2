"""The command of the local Spark server, and its environment."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from dagster_streamtables.runtime.spark.home import temporary
from dagster_streamtables.runtime.spark.jars import class_path, spark_folder
from dagster_streamtables.runtime.spark.settings import (
    CONNECT_SETTINGS,
    driver_memory,
    spark_settings,
)


def server_command(folder: Path, port: int, java_options: Sequence[str]) -> list[str]:
    """Starts the server, as the process of Java itself in the end.

    Args:
        folder: That of the server.
        port: Where it listens, on 127.0.0.1.
        java_options: More options of Java.
    """
    options = [f"-Djava.io.tmpdir={temporary(folder)}", *java_options]
    settings = {
        **spark_settings(),
        **CONNECT_SETTINGS,
        "spark.local.dir": str(temporary(folder)),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        # Its driver listens on two more ports, for executors, which do not exist here. They accept
        # serialized Java objects, by which anybody could run anything. Spark creates the key.
        "spark.authenticate": "true",
        # Libraries of the JVM unpack themselves, and sessions store files, in Java's temporary one.
        "spark.driver.defaultJavaOptions": " ".join(map(_java_word, options)),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    confs = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    return [
        str(spark_folder() / "bin" / "spark-submit"),
        "--class=org.apache.spark.sql.connect.service.SparkConnectServer",
        "--name=streamtables",
        "--master=local[*]",
        f"--driver-memory={driver_memory()}",
        # Not by `spark.jars`: Java archives only classes of the class path.
        f"--driver-class-path={os.pathsep.join(map(str, class_path()))}",
        *confs,
        "spark-internal",
    ]


def server_environment(java: Path) -> dict[str, str]:
    """This program's environment, without variables that would change what spark-submit does."""
    theirs = ("PYSPARK_", "SPARK_REMOTE", "SPARK_CONNECT_", "SPARK_LOCAL_", "SPARK_API_MODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
    ours = {"JAVA_HOME": str(java), "SPARK_HOME": str(spark_folder())}
    # It listens only here. Without this, Spark looks for the machine's name, which may take long.
    return kept | ours | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}


def _java_word(option: str) -> str:
    """One word of Java's options, which Spark splits at blanks and quotes.

    >>> print(_java_word('-Dfolder=/my "own" folder'))
    "-Dfolder=/my \\"own\\" folder"
    """
    return '"' + re.sub(r'(["\\])', r"\\\1", option) + '"'
