"""Records that sources could not read, in a batch: kept apart from the others while these pass, and made dead letters.

Spark notes them in the same pass (an observation, as for event time), so a batch without any costs no second look.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import Observation
from pyspark.sql import functions as f

from penstock.connectors.malformed import MALFORMED
from penstock.connectors.registry import source_connector
from penstock.graph.endpoints.parsing import keeps_malformed
from penstock.graph.nodes import Port, Source
from penstock.graph.nodes.policy import SKIP
from penstock.graph.types import quote
from penstock.kernels.errors.dead_letters import malformed_dead_letter
from penstock.kernels.errors.guard import DeadLetter
from penstock.kernels.records.reading import MalformedRecord, why_malformed
from penstock.live.dead_letters.replay import RAW
from penstock.spark.lower.context import Lowering
from penstock.spark.lower.time import noted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql import Row as SparkRow

MOST_DEAD_LETTERS = 10_000
"""Dead letters of one batch beyond which it is the flow that is broken."""


@dataclass(frozen=True)
class SourceNotes:
    """What Spark notes of a source while its records pass."""

    node: Source
    noted: Any

    def skipped(self) -> int:
        """How many records were left out."""
        return int(noted(self.noted).get("many", 0)) if self._skips else 0

    def dead_letters(self) -> list[DeadLetter]:
        """The dead letters; one more than are allowed, if there are too many."""
        if self._skips:
            return []
        found = noted(self.noted).get("found") or []
        endpoint = self.node.endpoint
        malformed = [(bytes(row["malformed"]["raw"] or b""), row["malformed"]["position"]) for row in found]
        positions = source_connector(self.node.name, endpoint).positions(malformed)
        return [self._dead_letter(row, position) for row, position in zip(found, positions, strict=True)]

    @property
    def _skips(self) -> bool:
        return self.node.error_action == SKIP

    def _dead_letter(self, row: SparkRow, position: str) -> DeadLetter:
        options = self.node.endpoint.options
        raw, cause = bytes(row["malformed"]["raw"] or b""), row["malformed"]["cause"]
        beside = {n: row["row"][n] for n in options.get("also") or ()}
        why = cause or why_malformed(options.get("format", ""), raw, self.node.output().schema)
        return malformed_dead_letter(self.node, MalformedRecord(raw, position, why), beside)


def readable(at: Lowering, port: Port) -> DataFrame:
    """The records of a source that could be read, those among them that are read again."""
    node = at.plan.graph.node(port.step)
    frame = at.frames[port]
    replayed = at.replays.pop((port.step, RAW), None)
    if replayed:
        frame = frame.unionByName(at.reread(port.step, replayed))
    return _apart(at, node, frame) if isinstance(node, Source) and keeps_malformed(node) else frame


def _apart(at: Lowering, node: Source, frame: DataFrame) -> DataFrame:
    names = [quote(n) for n in node.output().schema.names]
    seen = SourceNotes(node, Observation())
    at.malformed[node.name] = seen
    whole = f"struct({', '.join(names)})"
    if node.error_action == SKIP:
        noted = f"count(if({MALFORMED} is null, null, {whole})) as many"
    else:
        described = f"if({MALFORMED} is null, null, struct({MALFORMED} as malformed, {whole} as row))"
        noted = f"min_by({described}, {MALFORMED}.position, {MOST_DEAD_LETTERS + 1}) as found"
    return frame.observe(seen.noted, f.expr(noted)).where(f"{MALFORMED} is null").selectExpr(*names)
