"""Who looks at a run, and what they are shown: samples of streams, traces of messages, where the time goes. A run that nobody looks at does nothing for it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.graph.logic.topology.acks import AckReport
from penstock.graph.nodes import Port
from penstock.kernels.counts import PassCounts
from penstock.kernels.looks import NOTHING, Looks
from penstock.kernels.tracing import shown_traces

log = logging.getLogger("penstock")
MOST_WISHES = 4
"""How many streams are looked at at once."""
Sampled = Mapping[tuple[str, str, str], list[dict[str, Any]]]
"""Records by step, port and condition."""


@dataclass(frozen=True)
class SampleWish:
    """Somebody looks at a stream until a moment."""

    step: str
    port: str
    where: str
    until: float


@dataclass(frozen=True)
class Seen:
    """What a batch has of that which is looked at: samples of streams, messages with their tuples, and how often each stack was seen in workers."""

    samples: Sampled = field(default_factory=dict)
    traces: list[dict[str, Any]] = field(default_factory=list)
    stacks: dict[str, int] = field(default_factory=dict)


@dataclass
class Sampler:
    """What is looked at in this process; `tell` gets what a batch has of it."""

    wishes: tuple[SampleWish, ...] = ()
    trace_until: float = 0.0
    profile_until: float = 0.0
    levels: tuple[tuple[str, str], ...] = ()
    tell: Callable[[int, Seen], None] = lambda batch, found: None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def look_at(self, wishes: Iterable[SampleWish], trace_until: float = 0.0, profile_until: float = 0.0) -> None:
        """From now on this is looked at: streams, messages of spouts until a moment, and where the time goes until another."""
        self.wishes = tuple(wishes)[:MOST_WISHES]
        self.trace_until, self.profile_until = trace_until, profile_until

    def wanted(self) -> Looks:
        """What somebody looks at now; nothing, nearly always."""
        if not (self.wishes or self.trace_until or self.profile_until):
            return Looks(levels=self.levels) if self.levels else NOTHING
        now = time.time()
        streams = tuple(dict.fromkeys((Port(w.step, w.port), w.where) for w in self.wishes if w.until > now))
        return Looks(streams, self.trace_until > now, self.profile_until > now, self.levels)

    def show(self, batch: int, counts: PassCounts) -> None:
        """Shows what a batch has; what goes wrong here, such as a full disk, is not the concern of the batch, which is committed."""
        if counts.samples or counts.traces or counts.stacks:
            try:
                self._show(batch, counts)
            except Exception as error:
                log.warning("what is looked at in batch %d cannot be shown: %s", batch, error)

    def _show(self, batch: int, counts: PassCounts) -> None:
        acks = AckReport()
        for report in counts.acks.values():
            acks.add(report)
        traces = shown_traces(counts.traces, batch, acks.failed, acks.held)
        with self._lock:
            self.tell(batch, Seen(counts.samples, traces, counts.stacks))


SAMPLER = Sampler()
"""That of this process: a driver runs one flow."""
