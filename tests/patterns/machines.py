"""Runs a pattern of operators over events without a flow."""

from __future__ import annotations

from penstock.graph.expr import parse
from penstock.graph.patterns.operators import Operator, OperatorPattern, filters_of
from penstock.graph.schema import schema_of
from penstock.graph.times import FOREVER
from penstock.kernels.expr.evaluate import compile_expr
from penstock.kernels.patterns.operators.build import running
from penstock.kernels.patterns.operators.machine import Found, Machine
from tests.patterns.operator_reference import Given, Match

SCHEMA = schema_of("kind string, n int")


def typed(root: Operator, *, suppress: bool = False, discard: bool = False) -> OperatorPattern:
    """A pattern whose types are named by the field `kind`."""
    types = tuple((name, parse(f"kind = '{name}'")) for name in {f.type for f in filters_of(root)})
    return OperatorPattern(root, types, suppress, discard)


def run(
    pattern: OperatorPattern, events: list[Given], *, saves: bool = False, ends: bool = False
) -> list[tuple[int, Match]]:
    """The matches of events, with their times; with `saves` the machine is written and read after every event."""
    made = running(pattern, SCHEMA)
    tests = [[compile_expr(e, SCHEMA) for e in (f.type, f.plain) if e is not None] for f in made.filters]
    machine, found = Machine(pattern, made, SCHEMA), list[Found]()
    for event in events:
        row = (event.kind, event.n)
        bits = sum(1 << at for at, each in enumerate(tests) if all(test(row) is True for test in each))
        found += machine.take(event.time, row, bits)
        if saves:
            machine = Machine(pattern, made, SCHEMA).load(machine.dump())
    found += machine.move(FOREVER) if ends else []
    return [(each.time, {tag: tuple(e.number for e in es) for tag, es in each.match.items()}) for each in found]
