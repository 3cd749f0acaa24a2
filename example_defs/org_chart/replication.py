"""What is replicated: the tables of the application, into the schema `hr` of the lake."""

from __future__ import annotations

from dagster_streamtables import FromPostgres, Replication


def org_chart(address: str) -> Replication:
    """The tables of the org chart, wherever its server is."""
    tables = ["public.departments", "public.employees"]
    return Replication("org_chart", FromPostgres(address, tables=tables), schema="hr")
