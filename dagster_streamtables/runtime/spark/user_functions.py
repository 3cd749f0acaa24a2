"""Register the functions of `runtime/model/functions.py` in a session, each once."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.runtime.model.functions import UserFunction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_registered: weakref.WeakKeyDictionary[SparkSession, set[str]] = weakref.WeakKeyDictionary()
_registering = threading.Lock()


def register(spark: SparkSession, functions: Iterable[UserFunction]) -> None:
    """Register functions under their names in Spark.

    Raises:
        InvalidDefinition: Spark does not take one: its type or its SQL is wrong.
    """
    with _registering:
        known = _registered.setdefault(spark, set())
        for each in functions:
            if each.registered not in known:
                _register(spark, each)
                known.add(each.registered)


def _register(spark: SparkSession, function: UserFunction) -> None:
    from pyspark.errors import PySparkException

    try:
        if function.function is None:
            create = f"CREATE OR REPLACE TEMPORARY FUNCTION {function.registered}"
            spark.sql(f"{create}{function.rest}").collect()
        else:
            _by_value(function.function)
            spark.udf.register(function.registered, function.function, function.returns)
    except PySparkException as error:
        if not error.getCondition():
            raise
        raise InvalidDefinition(
            f"Spark does not take the function {function.name}",
            why=str(error).partition("\n")[0],
            fix="correct its type or its text",
        ) from error


def _by_value(function: Any) -> None:
    """Have the code of the function's module sent to Spark, whose workers may not import it."""
    from pyspark import cloudpickle

    module = sys.modules.get(function.__module__)
    if module is not None:
        cloudpickle.register_pickle_by_value(module)
