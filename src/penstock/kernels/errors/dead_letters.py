"""Dead letters as rows: what sinks, the dead-letter store and `penstock dlq` see of a record that was put aside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.graph.nodes import DEAD, Source
from penstock.graph.row import row_class
from penstock.graph.times import to_moment
from penstock.kernels.errors.guard import DeadLetter
from penstock.kernels.errors.payload import raw_payload
from penstock.kernels.records.reading import MalformedRecord


def malformed_dead_letter(
    source: Source, malformed: MalformedRecord, beside: Mapping[str, Any] | None = None
) -> DeadLetter:
    """The dead letter of a record that a source could not read. Its payload is what arrived: the bytes, and what stood beside them."""
    payload = raw_payload(malformed.raw, beside or {}, source.output().schema)
    return DeadLetter(source.name, malformed.cause, "", malformed.text, payload, number=malformed.position)


def dead_letter_rows(dead_letters: Iterable[DeadLetter], flow: str, lineage: str, batch: int, now: int) -> list[Any]:
    """Rows of the schema `DEAD`; the id is the same when the batch runs again."""
    make = row_class(DEAD.names)
    ordered = sorted(dead_letters, key=lambda made: (made.step, made.number, made.record))
    return [
        tuple.__new__(make, _values(made, f"{lineage}-{batch}-{at}", flow, batch, now))
        for at, made in enumerate(ordered)
    ]


def _values(made: DeadLetter, number: str, flow: str, batch: int, now: int) -> tuple[Any, ...]:
    where = f"batch {batch}, {made.number}" if made.number else f"batch {batch}"
    about = (made.step, made.cause, made.traceback, made.record)
    return (number, to_moment(now), flow, *about, where, batch, made.payload)
