"""What somebody looks at while a batch runs, as it travels to tasks. Workers import this with every task, so it imports little."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.graph.nodes import Port

SampledStream = tuple[Port, str]
"""A stream, and the condition that its records must meet; empty for all."""


@dataclass(frozen=True)
class Looks:
    """What is looked at; nothing, nearly always.

    Args:
        streams: the streams of which a few records are kept.
        traces: whether a few messages of spouts are followed through their bolts.
        profiles: whether it is noted where the time goes.
        levels: loggers that somebody has given a level, by name. They are no look: what is logged is not looked at here.
    """

    streams: tuple[SampledStream, ...] = ()
    traces: bool = False
    profiles: bool = False
    levels: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.streams) or self.traces or self.profiles


NOTHING = Looks()
