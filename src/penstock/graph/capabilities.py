"""What a connector can do: one record, set where its endpoint is made and asked by whoever checks a flow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

EXACTLY_ONCE, AT_LEAST_ONCE, AT_MOST_ONCE = "exactly_once", "at_least_once", "at_most_once"
DELIVERIES = (EXACTLY_ONCE, AT_LEAST_ONCE, AT_MOST_ONCE)
"""From the strongest delivery guarantee to the weakest."""
WEAKER = (AT_LEAST_ONCE, AT_MOST_ONCE)

RowErrors = Literal["none", "bisected", "reported", "staged"]
"""How a sink tells which row it refuses: not at all, by trying parts of a batch, row by row while it delivers, or while it stages a batch of which nothing is shown yet."""
TableRows = Literal["added", "removed", "shown"]
"""What a sink does with the rows of a table: it only adds them, it can remove one by its key, or it shows the changes as they are."""
TopicsIn = Literal["none", "log", "kafka"]
"""Where the topics are that are read or written."""


@dataclass(frozen=True)
class Capabilities:
    """What an endpoint's connector can do. Checks ask this, never the kind of the endpoint.

    Attributes:
        reads: A flow can read it.
        writes: A flow can write it.
        deliveries: The delivery guarantees it holds as a sink, the strongest first.
        weakness: Why it does not hold exactly_once, where there is more to say than that.
        parses: The formats of a source in which a record may turn out to be malformed; empty for one that has no format.
        row_errors: How a sink tells which row of a batch it refuses.
        table_rows: What a sink does with the rows of a table that may go.
        is_paced: A source takes as much for a batch as the driver says.
        is_immediate: The records of a source get a batch at once, whatever the interval of the run.
        is_bulk: A sink takes rows by the ten thousand; the first batches for it need not be small.
        can_shed: A source can leave out its oldest records and say how many.
        hides_backlog: A batch of a source may take less than there is, and Spark does not tell.
        can_watch: Files of this machine, whose change can be seen.
        emits_tuples: The records of a source are those of a spout, with their number, task and roots.
        topics_in: Where the topics are that it reads or writes: in Penstock's log, in Kafka, or it has none.
        partition_field: The field of a source's records that names their partition, each of which has a time of its own.
        runs_python: A function of the user's makes the records of a source.
        runs_locally: It works without a JVM.
        needs_jars: Spark needs JARs for it that do not come with Spark.
        package: The Python package it needs.
        extra: The extra of Penstock that brings the package.

    >>> from penstock.connectors.base import Capabilities
    >>> Capabilities(writes=True, deliveries=("at_least_once",)).holds("exactly_once")
    False
    """

    reads: bool = False
    writes: bool = False
    deliveries: tuple[str, ...] = ()
    weakness: str = ""
    parses: tuple[str, ...] = ()
    row_errors: RowErrors = "none"
    table_rows: TableRows = "added"
    is_paced: bool = False
    is_immediate: bool = False
    is_bulk: bool = False
    can_shed: bool = False
    hides_backlog: bool = False
    can_watch: bool = False
    emits_tuples: bool = False
    topics_in: TopicsIn = "none"
    partition_field: str = ""
    runs_python: bool = False
    runs_locally: bool = False
    needs_jars: bool = False
    package: str = ""
    extra: str = ""

    def holds(self, delivery: str) -> bool:
        """Whether a sink can hold a delivery guarantee.

        Args:
            delivery: 'exactly_once', 'at_least_once' or 'at_most_once'.

        Returns:
            Whether it is one of its deliveries.
        """
        return delivery in self.deliveries

    @property
    def reports_row_errors(self) -> bool:
        """Whether a sink can tell which row of a batch it refuses, and take the rest."""
        return self.row_errors != "none"


SOURCE = Capabilities(reads=True)
"""A source with no capability beyond being read."""
SINK = Capabilities(writes=True, deliveries=WEAKER)
"""A sink that keeps no ledger."""
LEDGER_SINK = Capabilities(writes=True, deliveries=DELIVERIES, is_bulk=True)
"""A sink that keeps a ledger, and so holds exactly_once."""
