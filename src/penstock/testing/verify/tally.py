"""The oracle: what the sink must hold, what a reader may have seen on the way, and the count of all that is otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from penstock.testing.verify.targets import Glance, SinkRow

Glances = list[dict[int, Glance]]


@dataclass(frozen=True)
class Tally:
    """What was found. All but the first three must be nothing."""

    records: int
    batches: int
    reads: int
    lost: int = 0
    duplicate: int = 0
    strange: int = 0
    """Rows that nobody sent."""
    reordered: int = 0
    """Rows out of the order of their key."""
    torn: int = 0
    """Reads that saw a part of a batch."""
    backward: int = 0
    """Reads that saw less than one before."""
    kills: Mapping[str, int] = field(default_factory=dict)

    @property
    def wrong(self) -> dict[str, int]:
        """What is not as it must be."""
        counts = ("lost", "duplicate", "strange", "reordered", "torn", "backward")
        return {name: getattr(self, name) for name in counts}

    @property
    def ok(self) -> bool:
        """Whether the sink kept its promise, and there was somebody to see it."""
        return not any(self.wrong.values()) and self.reads > 0

    def as_dict(self) -> dict[str, Any]:
        """The tally as plain values."""
        return {**asdict(self), "kills": dict(self.kills), "ok": self.ok}


@dataclass(frozen=True)
class Sent:
    """What was sent: the ids of each partition of the source, in their order, and the key of each."""

    parts: list[list[int]]
    keys: Mapping[int, str]

    def batches(self, ends: list[list[int]]) -> dict[int, int]:
        """The batch of each id, from the offsets at which each batch ended.

        >>> Sent([[0, 2], [1, 3]], {}).batches([[1, 0], [2, 2]])
        {0: 0, 2: 1, 1: 1, 3: 1}
        """
        found: dict[int, int] = {}
        for part, ids in enumerate(self.parts):
            begin = 0
            for batch, end in enumerate(each[part] for each in ends):
                found.update(dict.fromkeys(ids[begin:end], batch))
                begin = end
        return found


def tally(
    sent: Sent,
    ends: list[list[int]],
    rows: Mapping[int, list[SinkRow]],
    glances: Glances,
    *,
    ordered: bool,
    whole: bool = True,
) -> Tally:
    """Compares what was sent with what is there and with what was seen; `whole` says that records come out with the batch they were read in."""
    there = Counter(row.id for part in rows.values() for row in part)
    batch_of = sent.batches(ends)
    return Tally(
        records=len(sent.keys),
        batches=len(ends),
        reads=len(glances),
        lost=sum(1 for i in sent.keys if i not in there),
        duplicate=sum(n - 1 for i, n in there.items() if i in sent.keys),
        strange=sum(n for i, n in there.items() if i not in sent.keys),
        reordered=sum(_reordered(part, sent, ordered=ordered) for part in rows.values()),
        torn=_torn(glances, {part: _wholes(mine, batch_of) for part, mine in rows.items()}) if whole else 0,
        backward=_backward(glances),
    )


def merge(tallies: Sequence[Tally]) -> Tally:
    """The tally of a flow with several sinks, from that of each: what is wrong with any, and the reads of the one that was read least.

    >>> merge([Tally(10, 2, 5, lost=1), Tally(10, 2, 4, lost=2)])
    Tally(records=10, batches=2, reads=4, lost=3, duplicate=0, strange=0, reordered=0, torn=0, backward=0, kills={})
    """

    def total(count: str) -> int:
        return sum(each.wrong[count] for each in tallies)

    return replace(
        tallies[0],
        reads=min(each.reads for each in tallies),
        lost=total("lost"),
        duplicate=total("duplicate"),
        strange=total("strange"),
        reordered=total("reordered"),
        torn=total("torn"),
        backward=total("backward"),
    )


def _reordered(rows: Iterable[SinkRow], sent: Sent, *, ordered: bool) -> int:
    """Rows whose number is not their position among those of their key, or that stand before an earlier one."""
    last: dict[str, SinkRow] = {}
    wrong = 0
    for row in rows if ordered else sorted(rows):
        before = last.get(row.key, SinkRow(row.key, 0, -1))
        wrong += not (row.nth > before.nth and row.id > before.id and sent.keys.get(row.id) == row.key)
        last[row.key] = row
    return wrong


def _wholes(rows: list[SinkRow], batch_of: Mapping[int, int]) -> set[Glance]:
    """What a reader may see of a part: nothing, or all of the first so many batches."""
    sizes: dict[int, Glance] = {}
    for row in rows:
        batch = batch_of.get(row.id, -1)
        sizes[batch] = sizes.get(batch, Glance()).with_rows([row])
    seen, wholes = Glance(), {Glance()}
    for batch in sorted(sizes):
        seen = Glance(seen.rows + sizes[batch].rows, seen.total + sizes[batch].total)
        wholes.add(seen)
    return wholes


def _torn(glances: Glances, wholes: Mapping[int, set[Glance]]) -> int:
    empty = {Glance()}
    return sum(any(seen not in wholes.get(part, empty) for part, seen in glance.items()) for glance in glances)


def _backward(glances: Glances) -> int:
    wrong, most = 0, dict[int, int]()
    for glance in glances:
        wrong += any(seen.rows < most.get(part, 0) for part, seen in glance.items())
        most |= {part: max(seen.rows, most.get(part, 0)) for part, seen in glance.items()}
    return wrong
