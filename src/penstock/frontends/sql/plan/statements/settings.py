"""SET: which names there are, in our words and in Flink's."""

from __future__ import annotations

import logging

from penstock.errors import nearest
from penstock.frontends.sql.catalog.options import ON_ERROR, checked_policy
from penstock.frontends.sql.text.source import SqlText
from penstock.frontends.sql.text.statements import SetOption
from penstock.graph.run.spec import run_options

LOG = logging.getLogger("penstock")
MODE = "execution.runtime-mode"
NAME = "pipeline.name"
TTL = "table.exec.state.ttl"
IDLE_TIMEOUT = "table.exec.source.idle-timeout"
ALIASES = {
    MODE: "mode",
    "execution.checkpointing.interval": "interval",
    "execution.checkpointing.dir": "checkpoint",
    "state.checkpoints.dir": "checkpoint",
    "execution.checkpointing.num-retained": "keep_versions",
    "state.checkpoints.num-retained": "keep_versions",
    "execution.savepoint.path": "savepoint",
    "execution.state-recovery.path": "savepoint",
    "parallelism.default": "parallelism",
    "pipeline.max-parallelism": "key_groups",
}
"""Names of Flink's, and the option of a run that means the same."""
OF_THE_PLAN = (
    NAME,
    TTL,
    IDLE_TIMEOUT,
    ON_ERROR,
    "table.local-time-zone",
    "sql-client.execution.result-mode",
    "standing.queries.topic",
)
"""Names that are no options of a run: the planner or the shell reads them."""
WITHOUT_EFFECT = (
    "execution.buffer-timeout",
    "execution.checkpointing.mode",
    "execution.checkpointing.timeout",
    "execution.checkpointing.min-pause",
    "execution.checkpointing.unaligned",
    "execution.checkpointing.unaligned.enabled",
    "execution.checkpointing.incremental",
    "execution.target",
    "pipeline.object-reuse",
    "pipeline.operator-chaining",
    "pipeline.operator-chaining.enabled",
    "restart-strategy",
    "restart-strategy.type",
    "restart-strategy.fixed-delay.attempts",
    "restart-strategy.fixed-delay.delay",
    "sql-client.display.max-column-width",
    "sql-client.display.print-time-cost",
    "sql-client.execution.max-table-result.rows",
    "sql-client.verbose",
    "state.backend",
    "state.backend.type",
    "state.backend.incremental",
    "state.backend.rocksdb.localdir",
    "table.dml-sync",
    "table.dynamic-table-options.enabled",
    "table.exec.async-lookup.buffer-capacity",
    "table.exec.async-lookup.timeout",
    "table.exec.mini-batch.allow-latency",
    "table.exec.mini-batch.enabled",
    "table.exec.mini-batch.size",
    "table.exec.resource.default-parallelism",
    "table.exec.sink.not-null-enforcer",
    "table.exec.sink.upsert-materialize",
    "table.exec.source.cdc-events-duplicate",
    "table.exec.spill-compression.enabled",
    "table.optimizer.agg-phase-strategy",
    "table.optimizer.distinct-agg.split.bucket-num",
    "table.optimizer.distinct-agg.split.enabled",
    "table.optimizer.join-reorder-enabled",
    "table.optimizer.multiple-input-enabled",
    "table.optimizer.reuse-source-enabled",
    "table.optimizer.reuse-sub-plan-enabled",
    "table.optimizer.source.predicate-pushdown-enabled",
    "table.plan.compile.catalog-objects",
    "table.sql-dialect",
)
"""Names of Flink's that say how it carries a plan out; here they change nothing."""


def option_of(name: str) -> str:
    """The option of a run that a name in SET stands for; empty where it stands for none."""
    found = ALIASES.get(name, name.removeprefix("penstock.").replace("-", "_"))
    return found if found in run_options() else ""


def known_settings() -> list[str]:
    """All names that SET takes."""
    return [*run_options(), *ALIASES, *OF_THE_PLAN, *WITHOUT_EFFECT]


def is_without_effect(name: str) -> bool:
    """Whether a name changes nothing; the log says so, once for each SET."""
    if name in WITHOUT_EFFECT:
        LOG.warning("SET '%s' changes nothing here", name)
        return True
    return False


def checked_setting(text: SqlText, statement: SetOption) -> None:
    """Refuses names that mean nothing, and policies that there are not.

    Raises:
        SqlError: there is no such name; with the nearest.
    """
    name = statement.name
    if name == ON_ERROR:
        checked_policy(text, statement.value or "", statement.at)
    if name not in OF_THE_PLAN and not option_of(name) and not is_without_effect(name):
        raise text.error(statement.at, f"SET '{name}': there is no such option; {nearest(name, known_settings())}")
