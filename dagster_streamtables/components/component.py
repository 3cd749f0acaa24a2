"""`StreamTablesComponent`: stream tables as a Dagster component, and its `dg scaffold defs`."""

import re

# No `from __future__ import annotations`: Dagster reads the annotations of fields at run time.
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any

import dagster as dg

# What `translation:` of Dagster's own components is made of; not exported.
from dagster.components.utils.translation import TranslationFn, TranslationFnResolver
from pydantic import BaseModel, Field

from dagster_streamtables.compiler import View
from dagster_streamtables.components.component_settings import (
    CHANGE_ASSETS,
    ChangeAssetSettings,
    ExecutorName,
    OpSettings,
    Resource,
    ResourceModel,
    TableModel,
    ViewModel,
    executor_of,
    resolve_resource,
    resolve_tables,
    resolve_views,
)
from dagster_streamtables.components.component_tree import (
    CatalogComponent,
    Catalogs,
    catalogs_elsewhere,
    folder_of,
    keys_elsewhere,
    loc_of,
    name_of,
)
from dagster_streamtables.components.replication_settings import REPLICATIONS
from dagster_streamtables.components.yaml_settings import resolver
from dagster_streamtables.declare.nodes import ScheduledReplication
from dagster_streamtables.declare.schedule import MIN_SCHEDULE_SECONDS
from dagster_streamtables.declare.sql_files import Declared, read_files
from dagster_streamtables.errors import InvalidDefinition
from dagster_streamtables.orchestration.assets.assets import RefreshConfig, refresh_asset
from dagster_streamtables.orchestration.assets.streamtables_resource import StreamTablesResource
from dagster_streamtables.orchestration.automation.sensor_settings import SensorSettings
from dagster_streamtables.orchestration.catalog.asset_catalog import Catalog, read_by
from dagster_streamtables.orchestration.catalog.translator import (
    StreamTableProps,
    StreamTablesTranslator,
)
from dagster_streamtables.orchestration.checks.check_kind import CheckSettings
from dagster_streamtables.orchestration.definitions import build_catalogs, build_definitions

_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*){0,2}")


class ScaffoldParams(BaseModel):
    """The options on the command line."""

    root: str | None = Field(
        default=None,
        description="The folder or URI of the tables: sales.orders is its subfolder sales/orders. "
        "Default: the folder lake of the project.",
    )
    spark: str | None = Field(
        default=None,
        description="The address of a Spark Connect server. Default: a local one is started.",
    )
    folder: str = Field(default="tables", description="The folder for .sql files.")
    table: str = Field(default="first", description="The name of the first stream table.")
    source: str = Field(
        default="sales.orders", description="The Delta table that the first stream table counts."
    )
    schedule: str = Field(default="5m", description="The schedule of the first stream table.")


class StreamTablesScaffolder(dg.Scaffolder[ScaffoldParams]):
    """Creates a `defs.yaml`, and a first `.sql` file that works and explains itself."""

    @classmethod
    def get_scaffold_params(cls) -> type[ScaffoldParams]:
        return ScaffoldParams

    def scaffold(self, request: dg.ScaffoldRequest[ScaffoldParams]) -> None:
        """Raises `InvalidDefinition` if a table name is invalid."""
        params = request.params
        for name in (params.table, params.source):
            if not _TABLE.fullmatch(name):
                raise InvalidDefinition(
                    f'"{name}" is not a valid table name',
                    fix="use letters, digits and underscores, for example sales.orders",
                )
        if request.scaffold_format == "python":
            (request.target_path / "component.py").write_text(_python(params), encoding="utf-8")
        else:
            dg.scaffold_component(request, _attributes(params))
        here = request.target_path.parent if request.append else request.target_path
        file = (here / params.folder).joinpath(*params.table.split(".")).with_suffix(".sql")
        if not file.exists():  # else a person wrote it
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(_first(params), encoding="utf-8")


def _attributes(params: ScaffoldParams) -> dict[str, Any]:
    spark = {"spark": params.spark} if params.spark else {}
    root = params.root or "{{ context.project_root }}/lake"
    return {"resource": {"root": root, **spark}, "folder": params.folder}


def _python(params: ScaffoldParams) -> str:
    root = repr(params.root) if params.root else 'str(context.project_root / "lake")'
    spark = f", spark={params.spark!r}" if params.spark else ""
    return (
        "import dagster as dg\n\n"
        "from dagster_streamtables import StreamTablesComponent, StreamTablesResource\n\n\n"
        "@dg.component_instance\n"
        "def load(context: dg.ComponentLoadContext) -> StreamTablesComponent:\n"
        "    return StreamTablesComponent(\n"
        f"        resource=StreamTablesResource(root={root}{spark}),\n"
        f"        folder={params.folder!r},\n"
        "    )\n"
    )


def _first(params: ScaffoldParams) -> str:
    path = params.source.replace(".", "/")
    return (
        f"-- The stream table {params.table}, named after this file: first its settings, then one\n"
        "-- SELECT. Refreshes keep the table equal to the result of the SELECT.\n"
        f"-- schedule: {params.schedule}\n"
        f"-- description: The number of rows of {params.source}.\n"
        "\n"
        f"-- {params.source} is the Delta table in the folder {path} below the root in defs.yaml,\n"
        f"-- and the asset {path}. Until it exists, the sensor waits for it.\n"
        f"SELECT COUNT(*) AS how_many\nFROM {params.source}\n"
    )


about = dg.Resolver.default


@dg.scaffold_with(StreamTablesScaffolder)
@dataclass
class StreamTablesComponent(CatalogComponent, dg.Resolvable):
    """Delta tables that are defined by SQL queries, and updated incrementally when sources change.

    Each `.sql` file of a folder, or each entry of `tables`, becomes an asset that depends on the
    tables in its SQL. A sensor refreshes the tables that are due, freshness policies monitor them,
    and checks prove that they equal their queries. Tables that other components or Python files of
    the project write join the same graph; other sources are observed, by their Delta versions.

    `dg scaffold defs dagster_streamtables.StreamTablesComponent my_tables` creates an example.
    """

    resource: Annotated[
        Resource,
        dg.Resolver(
            resolve_resource,
            model_field_type=ResourceModel,
            description="Where the tables are, and which Spark refreshes them.",
        ),
    ]
    folder: Annotated[
        str | None,
        about(
            description="A folder of .sql files, one table or view in each, named after its path: "
            "mart/revenue.sql is mart.revenue. A relative path begins at the folder of this file.",
            examples=["tables"],
        ),
    ] = None
    tables: Annotated[
        Sequence[Declared],
        dg.Resolver(
            resolve_tables,
            model_field_type=Sequence[TableModel],
            description="Stream tables declared in this file.",
        ),
    ] = field(default_factory=list)
    views: Annotated[
        Sequence[View],
        dg.Resolver(
            resolve_views,
            model_field_type=Sequence[ViewModel],
            description="Views: queries that other queries may name. Their rows are not stored.",
        ),
    ] = field(default_factory=list)
    change_assets: Annotated[Sequence[ChangeAssetSettings], CHANGE_ASSETS] = field(
        default_factory=list
    )
    replications: Annotated[Sequence[ScheduledReplication], REPLICATIONS] = field(
        default_factory=list
    )
    name: Annotated[
        str | None,
        about(
            description="The name of the resource, and the prefix of the names of sensor, "
            "schedules and checks. Default: the path of this folder below the defs folder."
        ),
    ] = None
    translation: Annotated[
        Annotated[
            TranslationFn[StreamTableProps],
            TranslationFnResolver[StreamTableProps](lambda props: {"st": props}),
        ]
        | None,
        about(
            description="Changes the asset of each table. `st` has name, schema, sources, and "
            "table with all its settings; `spec` is the asset before the change.",
            examples=[{"key_prefix": "lake", "group_name": "{{ st.schema }}"}],
        ),
    ] = None
    group_name: Annotated[
        str | None, about(description="The group of the tables that declare none.")
    ] = None
    source_group_name: Annotated[
        str | None, about(description="The group of the observed sources.")
    ] = None
    source_keys: Annotated[
        dict[str, dg.ResolvedAssetKey],
        about(
            description="Asset keys of sources, by their names in queries. The default key is the "
            "name, split at the dots.",
            examples=[{"sales.orders": "raw/shop/orders"}],
        ),
    ] = field(default_factory=dict)
    observe_sources: Annotated[
        bool,
        about(description="Whether sources that no asset writes become observable assets."),
    ] = True
    written_by_dagster: Annotated[
        Sequence[dg.ResolvedAssetKey] | None,
        about(
            description="The keys of sources that other assets write. Default: found in the rest "
            "of the defs folder."
        ),
    ] = None
    op: Annotated[OpSettings, resolver(OpSettings, "The ops that refresh the tables.")] = field(
        default_factory=OpSettings
    )
    sensor: Annotated[
        SensorSettings, resolver(SensorSettings, "The sensor that refreshes the tables.")
    ] = field(default_factory=SensorSettings)
    checks: Annotated[CheckSettings, resolver(CheckSettings, "When checks run, and how.")] = field(
        default_factory=CheckSettings
    )
    executor: Annotated[
        ExecutorName, about(description="The executor of scheduled refreshes and checks.")
    ] = "threads"
    min_schedule_seconds: Annotated[float, about(description="Refuse shorter schedules.")] = (
        MIN_SCHEDULE_SECONDS
    )
    compile_at_load: Annotated[
        bool,
        about(
            description="Compile the queries when the code location loads. This finds broken "
            "queries, and assets show their columns before the first refresh."
        ),
    ] = True
    strict: Annotated[
        bool,
        about(
            description="Refuse to load if a definition is broken. Otherwise its asset fails when "
            "run."
        ),
    ] = False

    @classmethod
    def get_spec(cls) -> dg.ComponentTypeSpec:
        """What `dg list components` shows."""
        more: dict[str, Any] = {}
        if hasattr(dg.ComponentTypeSpec, "produces"):  # not in Dagster 1.12
            more["produces"] = ["asset", "asset_check", "sensor", "schedule", "resource"]
        return dg.ComponentTypeSpec(tags=["delta", "spark", "sql", "incremental"], **more)

    def get_asset_spec(self, props: StreamTableProps) -> dg.AssetSpec:
        """The asset of a stream table, before `translation`. Override it for what YAML cannot do.

        Args:
            props: The table, its analysis, and the asset keys of its sources.

        Examples:
            ```python
            class Mine(StreamTablesComponent):
                def get_asset_spec(self, props):
                    spec = super().get_asset_spec(props)
                    return spec.merge_attributes(tags={"layer": props.schema})
            ```
        """
        return StreamTablesTranslator().get_asset_spec(props)

    def execute(
        self,
        context: dg.AssetExecutionContext,
        streamtables: StreamTablesResource,
        spec: dg.AssetSpec,
        config: RefreshConfig,
    ) -> Iterator[dg.MaterializeResult[Any]]:
        """Refresh the stream table of an asset. Override it to add steps before or after.

        Args:
            context: The context of the op.
            streamtables: The resource.
            spec: The asset.
            config: The config of the run.

        Raises:
            dg.Failure: Its definition is broken, or the refresh failed.
        """
        yield from refresh_asset(context, streamtables, spec, config)

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """The definitions of `build_definitions`, connected to the rest of the project."""
        name = self.name_in(context)
        here, others = self.catalogs(context), catalogs_elsewhere(context)
        files = self.folder if self.change_assets else None
        views = [*self.views, *(read_files(folder_of(context) / files)[1] if files else ())]
        return build_definitions(
            resource=self.resource,
            name=name,
            tables=self._connect_catalog(context),
            change_assets=[each.asset(name, views) for each in self.change_assets],
            # With the schedules that they inherit from readers in any component.
            replications=here.replicated.read_by([here.tables, *others]),
            source_keys=self.source_keys,
            source_group_name=self.source_group_name,
            sensor=self.sensor,
            checks=self.checks,
            executor=executor_of(self.executor, self.resource.max_concurrent_refreshes),
            pool=self.op.pool,
            op_tags=self.op.tags or None,
            retry_policy=self.op.retry_policy,
            refresh=self.execute,
        )

    def name_in(self, context: dg.ComponentLoadContext) -> str:
        """The name of the resource, and the prefix of the names of sensor, schedules and checks."""
        return self.name or name_of(context)

    def catalogs(self, context: dg.ComponentLoadContext) -> Catalogs:
        """The stream tables and the replicated tables, with their assets.

        Raises:
            StreamTablesError: The folder does not exist or, if `strict`, a definition is broken.
        """
        loc = loc_of(context)
        if loc not in self._catalogs:
            folder = folder_of(context) / self.folder if self.folder else None
            tables, replicated = build_catalogs(
                self.tables,
                self.replications,
                folder=folder,
                views=self.views,
                resource=self.resource,
                name=self.name_in(context),
                translator=_Translator(self),
                group_name=self.group_name,
                source_group_name=self.source_group_name,
                source_keys=self.source_keys,
                min_schedule_seconds=self.min_schedule_seconds,
                compile_at_load=self.compile_at_load,
                strict=self.strict,
            )
            if not tables.entries and not replicated.entries:
                raise InvalidDefinition(
                    "there are no stream tables",
                    where=str(folder or folder_of(context)),
                    fix="give a folder with .sql files, or declare tables below `tables`",
                )
            self._catalogs[loc] = Catalogs(tables, replicated)
        return self._catalogs[loc]

    @cached_property
    def _catalogs(self) -> dict[Any, Catalogs]:
        return {}

    def _connect_catalog(self, context: dg.ComponentLoadContext) -> Catalog:
        """The catalog, connected to the code location: it inherits schedules from tables of other
        components, and observes only sources that nothing else defines."""
        catalog = read_by(self.catalogs(context).tables, catalogs_elsewhere(context))
        if not self.observe_sources:
            return replace(catalog, observed={})
        given = self.written_by_dagster
        written = keys_elsewhere(context) if given is None else set(given)
        observed = {n: key for n, key in catalog.observed.items() if key not in written}
        return replace(catalog, observed=observed)


class _Translator(StreamTablesTranslator):
    def __init__(self, component: StreamTablesComponent) -> None:
        self._component = component

    def get_asset_spec(self, props: StreamTableProps) -> dg.AssetSpec:
        spec = self._component.get_asset_spec(props)
        translation = self._component.translation
        return translation(spec, props) if translation else spec
