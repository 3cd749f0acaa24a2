"""Tables of older versions: are their columns those that Spark gives to the query?

Until their first refresh by this version, two things are not known of them. Columns of ``t.*`` over
a join by names were stored by place, under names in another order than Spark's. And a change of a
table that USING or NATURAL matches with the result of a RIGHT or FULL JOIN by names reached only
some of its rows.
"""

from __future__ import annotations

from sqlglot import exp

from dagster_streamtables.compiler import QueryPlan
from dagster_streamtables.runtime.compute import differential
from dagster_streamtables.runtime.compute.inputs import Inputs
from dagster_streamtables.runtime.model.definition import visible_names
from dagster_streamtables.runtime.refresh.context import Job


def why_rebuild(job: Job, inputs: Inputs) -> str | None:
    """Why a stored table that was never compared with its query is rebuilt; None if it is right.

    Raises:
        RejectedQuery: Spark does not run the query.
    """
    if job.plan is None or job.stored is None:
        return None  # each refresh in full stores what Spark returns, under Spark's names
    found = differential.full(job.plan, job.text, job.sources, inputs).columns
    names, stored = visible_names(found), visible_names(job.stored.log.columns)
    if names != stored:
        return (
            "an older version may have stored values under the wrong names: the columns are "
            f"{', '.join(stored)}, and those of the query {', '.join(names)}"
        )
    if isinstance(job.plan, QueryPlan) and _joins_outer_by_name(job.plan.text.tree):
        return "an older version did not follow all changes of RIGHT and FULL joins by names"
    return None


def _joins_outer_by_name(tree: exp.Expr) -> bool:
    return any(
        join.side in ("RIGHT", "FULL") and (join.args.get("using") or join.method == "NATURAL")
        for join in tree.find_all(exp.Join)
    )
