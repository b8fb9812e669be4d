"""The table of all planted bugs."""

from __future__ import annotations

from tests.planted import jobs, kafka, ledger, sinks, state, topics
from tests.planted.plant import Bug

FAST: list[Bug] = [*ledger.BUGS, *topics.BUGS, *state.BUGS, *jobs.BUGS]
"""Those that need no JVM."""
SPARK: list[Bug] = sinks.BUGS
KAFKA: list[Bug] = kafka.BUGS
