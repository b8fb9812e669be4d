"""Fills in the rows in and out of the steps that do not count themselves, from those that do.

Native steps run inside Spark's own loops, where counting would cost; but what a step emits is what its reader takes,
and a step such as `select` emits as many as it takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.graph.graph import Graph
from penstock.graph.nodes import (
    AsRecords,
    Branch,
    Combine,
    Node,
    Parts,
    Port,
    Repartition,
    Select,
    Union,
    WindowParts,
    WithColumns,
)

Counts = dict[str, tuple[int, int]]
EQUAL = (Select, WithColumns, Union, Branch, AsRecords, Repartition)
"""Steps that give as many records as they take."""
HALVES = (Parts, Combine, WindowParts)
"""The halves before the shuffle that the compiler made of a step."""


def complete(graph: Graph, taken: Mapping[str, int], given: Mapping[str, int]) -> Counts:
    """The rows in and out of every step for which both are known, under the names of the user's steps."""
    known = _Known(graph, dict(taken), dict(given))
    known.fill()
    return known.of_user_steps()


def halves_of(graph: Graph) -> dict[str, str]:
    """The half before the shuffle of each step that has one, by the name of the step."""
    return {n.of.name: n.name for n in graph.nodes if isinstance(n, HALVES)}


@dataclass
class _Known:
    graph: Graph
    taken: dict[str, int] = field(default_factory=dict)
    given: dict[str, int] = field(default_factory=dict)

    def fill(self) -> None:
        """Goes over the steps, forth and back, until nothing new is learnt."""
        before = -1
        while before != len(self.taken) + len(self.given):
            before = len(self.taken) + len(self.given)
            for node in (*self.graph.ordered, *reversed(self.graph.ordered)):
                self._learn(node)

    def _learn(self, node: Node) -> None:
        name = node.name
        inputs = [self._stream(p) for p in node.inputs]
        if name not in self.taken and inputs and None not in inputs:
            self.taken[name] = sum(n for n in inputs if n is not None)
        if isinstance(node, EQUAL):
            self._equal(name)
        if name not in self.given and len(node.outputs) == 1:
            read = self._read(Port(name, node.outputs[0].name))
            if read is not None:
                self.given[name] = read

    def _equal(self, name: str) -> None:
        if name in self.taken:
            self.given.setdefault(name, self.taken[name])
        elif name in self.given:
            self.taken[name] = self.given[name]

    def _stream(self, port: Port) -> int | None:
        """The records of a stream: what its step emits, if that is its only output."""
        node = self.graph.node(port.step)
        return self.given.get(port.step) if len(node.outputs) == 1 else self._read(port)

    def _read(self, port: Port) -> int | None:
        """The records of a stream, from a reader that reads nothing else."""
        readers = [n for n in self.graph.readers(port) if n.inputs == (port,)]
        return next((self.taken[n.name] for n in readers if n.name in self.taken), None)

    def of_user_steps(self) -> Counts:
        """Both numbers of each step; the halves that the compiler made of a step count as one."""
        first = halves_of(self.graph)
        made: Counts = {}
        for node in self.graph.nodes:
            taken = self.taken.get(first.get(node.name, node.name), self.taken.get(node.name))
            given = self.given.get(node.name)
            if not isinstance(node, HALVES) and taken is not None and (given is not None or not node.outputs):
                made[node.name] = (taken, taken if given is None else given)
        return made
