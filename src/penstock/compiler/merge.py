"""Merges stages of a plan into one Python pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from penstock.compiler.plan import PYTHON, Stage, external
from penstock.graph.expr import Expr
from penstock.graph.expr.columnar import is_columnar
from penstock.graph.nodes import Node, Select, Where, WithColumns
from penstock.graph.schema import Schema


def merged_into(stages: list[Stage], stage: Stage, before: list[Stage]) -> list[Stage] | None:
    """The stages with one merged into some before it; None where these would wait for each other."""
    if not before:
        return None
    merged = _merged([s for s in stages if s in before or s is stage])
    others = [s for s in stages if s not in before and s is not stage]
    return _in_order([*others, merged]) if _reads_once(merged) else None


def with_outputs(stages: list[Stage], stage: Stage) -> Stage:
    """A stage with the streams that others read of it."""
    return Stage(stage.host, stage.nodes, external(stages, stage), stage.shuffle, stage.state)


def _merged(stages: list[Stage]) -> Stage:
    """One stage of several; its records move where those of a step that reads other stages do."""
    made = Stage(PYTHON, tuple(node for stage in stages for node in stage.nodes), state=any(s.state for s in stages))
    readers = {node.name for node, _ in made.reads}
    return replace(made, shuffle=next((s.shuffle for s in stages if s.shuffle and s.steps & readers), ""))


def _reads_once(stage: Stage) -> bool:
    """Whether no stream goes to two steps of a stage, which may have it by different keys."""
    return max(Counter(node.inputs[at] for node, at in stage.reads).values(), default=0) == 1


def _in_order(stages: list[Stage]) -> list[Stage] | None:
    """Stages in an order in which each stands after those it reads from; None when two wait for each other."""
    made: list[Stage] = []
    left, done = list(stages), set[str]()
    while left:
        ready = next((s for s in left if all(port.step in done for port in s.inputs)), None)
        if ready is None:
            return None
        left.remove(ready)
        made.append(ready)
        done |= ready.steps
    return made


def runs_in_arrow(node: Node, schema: Schema) -> bool:
    """Whether Arrow computes what a native step does as Spark does."""
    return all(is_columnar(each, schema) for each in _expressions(node))


def _expressions(node: Node) -> Iterator[Expr]:
    if isinstance(node, Where):
        yield node.condition
    elif isinstance(node, Select | WithColumns):
        yield from (each for _, each in node.columns)
