"""What became of standing queries: how often each has fired, how many rows it has written, and whether it waits or has ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.frontends.sql.standing.groups import STEP
from penstock.graph.nodes.relational.trigger import Trigger
from penstock.graph.times import to_moment
from penstock.location import Address
from penstock.state.one_version import Snapshot
from penstock.state.reader import OpenState

STANDING, ENDED, PENDING = "standing", "ended", "pending"


@dataclass(frozen=True)
class QueryStatus:
    """A query in the last committed version of a flow.

    Args:
        status: standing, ended, or pending: its shape has no plan yet.
        rows: how many rows it has written, those that it has taken back among them.
        firings: how often it has fired; without a trigger, in how many batches its result has changed.
        last: when it last fired, by processing time; empty where it has not.
        ended: when it has ended; empty where it has not.
    """

    status: str
    rows: int = 0
    firings: int = 0
    last: str = ""
    ended: str = ""


def statuses_of(folder: Address) -> dict[str, QueryStatus]:
    """The standing queries that a flow has, by name, from its checkpoint."""
    state = OpenState(folder)
    return state.of_version(None, lambda version: dict(_statuses(Snapshot.of(state, version))))


def _statuses(snapshot: Snapshot) -> Iterator[tuple[str, QueryStatus]]:
    stores = [name for name in snapshot.files if name.startswith(f"{STEP}.")]
    if f"{STEP}.wait" in stores:
        rows = snapshot.read(f"{STEP}.wait").to_pylist()
        yield from ((str(row["query"]), QueryStatus(PENDING)) for row in rows)
    for name in stores:
        schema = snapshot.schemas.get(name)
        if schema is not None and schema.node == Trigger.kind:
            yield from ((str(row["query"]), _status(row)) for row in snapshot.read(name).to_pylist())


def _status(row: dict[str, int | None]) -> QueryStatus:
    ended, last = row.get("ended"), row.get("last")
    status = STANDING if ended is None else ENDED
    return QueryStatus(status, row.get("emitted") or 0, row.get("firings") or 0, _moment(last), _moment(ended))


def _moment(micros: int | None) -> str:
    return "" if micros is None else to_moment(micros).isoformat(timespec="milliseconds")
