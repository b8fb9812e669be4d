"""Load shedding: a flow that has fallen too far behind leaves out the oldest records it has not read, because its user said so."""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.errors import FlowError
from penstock.graph.duration import Span, micros, shown
from penstock.graph.nodes.endpoint import Endpoint
from penstock.graph.spelling import spelled


@dataclass(frozen=True, repr=False)
class ShedRule:
    """How far behind is too far: so many records, or records so much older than now (in microseconds); 0 for either is no limit.

    >>> ShedRule(behind=1000)
    more than 1,000 records behind
    """

    behind: int = 0
    older: int = 0

    def __repr__(self) -> str:
        parts = [f"more than {self.behind:,} records behind"] if self.behind else []
        parts += [f"older than {shown(self.older)}"] if self.older else []
        return ", or ".join(parts)


@spelled
def shed(*, behind: int = 0, older: Span | None = None) -> ShedRule:
    """Has a topic leave out its oldest records when the flow has fallen too far behind: a declared loss.

    What is left out is counted for each batch and source, and never comes back.

    Args:
        behind: how many records may wait; 0 is no limit.
        older: how old a record may be, such as "30s"; None is no limit.

    Returns:
        The rule, for `Flow.source(..., shed=)`.

    Raises:
        FlowError: there is no limit, or it is not one.

    >>> import penstock as ps
    >>> ps.shed(behind=100_000, older="30s")
    more than 100,000 records behind, or older than 30s
    """
    whole = isinstance(behind, int) and not isinstance(behind, bool) and behind >= 0
    if not whole or (not behind and older is None):
        raise FlowError(
            f"shed needs behind=1000 (records), older='30s', or both, got behind={behind!r}, older={older!r}"
        )
    age = 0 if older is None else micros(older, "the age from which shed leaves records out")
    if older is not None and age <= 0:
        raise FlowError(f"shed: older is a time such as '30s', got {older!r}")
    return ShedRule(behind, age)


def shedding(where: str, endpoint: Endpoint, given: object) -> Endpoint:
    """The endpoint of a source that may shed, checked: only the log knows what it leaves out, and can count it."""
    if given is None:
        return endpoint
    if not isinstance(given, ShedRule):
        raise FlowError(f"{where}: shed is ps.shed(behind=1000) or ps.shed(older='30s'), got {given!r}")
    if not endpoint.capabilities.can_shed:
        raise FlowError(
            f"{where}: only a topic of the log (ps.topic) can leave records out and say how many; {endpoint.kind!r} cannot. Bring "
            f"the records into a topic first: penstock bridge, or a flow with ps.write_topic(...)"
        )
    return replace(endpoint, options={**endpoint.options, "shed": given})
