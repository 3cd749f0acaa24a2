"""`StreamTablesResource`: where the tables are and which Spark refreshes them."""

# No `from __future__ import annotations`: Dagster reads the annotations of fields at run time.
import threading
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Annotated, Any

import dagster as dg
from pydantic import Field, PrivateAttr, model_validator

from dagster_streamtables.compiler import View
from dagster_streamtables.dagster_private import DagsterLibraryRegistry
from dagster_streamtables.errors import EnvironmentProblem
from dagster_streamtables.runtime.lake import Lake
from dagster_streamtables.setting import NON_EMPTY, Display, Range, require, settings_of

DagsterLibraryRegistry.register(
    "dagster-streamtables", version("dagster-streamtables"), is_dagster_package=False
)


class StreamTablesResource(dg.ConfigurableResource):
    """The tables of one root, and the Spark that refreshes them.

    Nothing starts before the first refresh that needs Spark. To use a session that your code
    location already has, pass the resource that creates it:

    ```python
    pyspark = LazyPySparkResource(spark_config={"spark.remote": "sc://host:15002"})
    StreamTablesResource(root="s3://lake", pyspark=pyspark)
    ```

    If sessions come from somewhere else, override `session`.

    Raises:
        EnvironmentProblem: Both `spark` and `pyspark` are given.
    """

    root: Annotated[
        str, NON_EMPTY, Display(("s3://lake/warehouse", "{{ context.project_root }}/lake"))
    ] = Field(
        description="The folder or URI of the tables: `sales.orders` is its subfolder "
        "`sales/orders`. In YAML, a relative path begins at the folder of the file."
    )
    spark: Annotated[
        str | None,
        Display(
            ("sc://spark.internal:15002", "{{ env.SPARK_REMOTE }}"), default="a local Spark server"
        ),
    ] = Field(
        default=None,
        description="The address of a Spark Connect server, such as `sc://host:15002`. Without "
        "one, a local server is started when needed, and shared by all processes.",
    )
    pyspark: dg.ResourceDependency[Any] = Field(
        default=None,  # pyright: ignore[reportAssignmentType]
        description="A resource whose `spark_session` runs the refreshes: LazyPySparkResource or "
        "PySparkResource of dagster-pyspark.",
    )
    storage_options: Annotated[
        dict[str, str],
        Display(({"AWS_SECRET_ACCESS_KEY": "{{ env.AWS_SECRET_ACCESS_KEY }}"},)),
    ] = Field(
        default={},
        description="Options of delta-rs to reach the root, such as credentials. In YAML, a value "
        "that is only `{{ env.X }}` is read when needed, not shown in the UI, and left out if X "
        "is not set.",
        repr=False,
    )
    catalogs: Annotated[
        dict[str, str],
        Display(({"main": "https://catalog.internal", "sales": "spark"},)),
    ] = Field(
        default={},
        description="Catalogs whose tables queries may name, by the first parts of those names: "
        "the URL of a Unity Catalog, or `spark` for a catalog of the Spark session, such as Hive's "
        "or Glue's.",
    )
    catalog_token: Annotated[
        str,
        Display(("{{ env.CATALOG_TOKEN }}",), default="none"),
    ] = Field(
        default="",
        description="The bearer token for Unity Catalog. In YAML, a value that is only "
        "`{{ env.X }}` is read when needed, and not shown in the UI.",
        repr=False,
    )
    register_in: Annotated[str, Display(("spark_catalog",), default="none")] = Field(
        default="",
        description="A catalog of the Spark session that gets each stream table after a refresh "
        "that created or rebuilt it, as an external table with its description.",
    )
    max_concurrent_refreshes: Annotated[int, Range(1)] = Field(
        default=4,
        description="How many tables a run refreshes at the same time, each in a thread, on one "
        "Spark. A table still waits for those it reads.",
    )
    preview_rows: Annotated[int, Range(0)] = Field(
        default=0,
        description="How many changed rows each materialization shows. They are stored in "
        "Dagster's database, so the default is 0.",
    )
    allow_unsafe_commits: bool = Field(
        default=False,
        description="Whether Spark may commit to S3 by a log store that could erase the commits of "
        "other writers: only where Spark alone writes the tables. Elsewhere, such a commit is "
        "refused.",
    )
    # Threads that refresh share one lake for the same views, which caches the logs.
    _lakes: dict[tuple[View, ...], Lake] = PrivateAttr(default_factory=dict)
    _making: Any = PrivateAttr(default_factory=threading.Lock)

    @model_validator(mode="before")
    @classmethod
    def _one_spark(cls, given: Any) -> Any:
        if given.get("spark") is not None and given.get("pyspark") is not None:
            raise EnvironmentProblem(
                "the resource has both spark and pyspark",
                why="spark is the address of a server, pyspark a resource with its own session",
                fix="give only one of the two",
            )
        return given

    # Before pydantic, which accepts "4" and True as numbers. Values that Dagster fills in later,
    # such as environment variables, are checked then.
    @model_validator(mode="before")
    @classmethod
    def _check_setting_types(cls, given: Any) -> Any:
        for each in settings_of(cls):
            if each.name in given and not hasattr(given[each.name], "env_var_name"):
                require(each.name, each.hint, given[each.name])
        return given

    def session(self) -> Any:
        """A session, the address of a server, or None for the local one. Called at first use."""
        if self.pyspark is None:
            return self.spark
        try:
            return self.pyspark.spark_session
        except AttributeError as error:
            raise EnvironmentProblem(
                f"{type(self.pyspark).__name__} has no Spark session",
                why=str(error),
                fix="give a resource with the attribute spark_session, such as LazyPySparkResource",
            ) from error

    def lake(self, views: Sequence[View] = ()) -> Lake:
        """The tables, with Spark.

        Args:
            views: Queries that the queries which it runs may name like tables.
        """
        known = tuple(views)
        with self._making:
            if known not in self._lakes:
                self._lakes[known] = Lake(
                    self.root,
                    spark=self.session(),
                    storage_options=dict(self.storage_options),
                    preview_rows=self.preview_rows,
                    allow_unsafe_commits=self.allow_unsafe_commits,
                    views=known,
                    catalogs=dict(self.catalogs),
                    catalog_token=self.catalog_token,
                    register_in=self.register_in,
                )
            return self._lakes[known]

    def logs(self) -> Lake:
        """The tables without Spark, for reading their Delta logs.

        Also works while a code location loads, before Dagster initializes the resource.
        """
        options = {key: _value(value) for key, value in self.storage_options.items()}
        return Lake(
            _value(self.root),
            storage_options=options,
            catalogs={prefix: _value(address) for prefix, address in self.catalogs.items()},
            catalog_token=_value(self.catalog_token),
            ask_spark=False,
        )

    def refresh(self, context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[Any]]:
        """Refresh the stream tables selected in a run, each after those it reads, and up to
        `max_concurrent_refreshes` at the same time.

        Call it in a function decorated with `@stream_table_assets`.

        Args:
            context: The context of the op.

        Raises:
            dg.Failure: A refresh failed. Tables that do not depend on it are still refreshed.
        """
        from dagster_streamtables.orchestration.assets.materialization import refresh_selection

        return refresh_selection(context, self.lake(), parallel=self.max_concurrent_refreshes)


def _value(text: str) -> str:
    return (text.get_value() or "") if isinstance(text, dg.EnvVar) else text
