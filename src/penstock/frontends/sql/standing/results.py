"""Where the results of standing queries go: those of one table that only grow are written together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.errors import SqlError
from penstock.frontends.sql.expr.scope import Relation
from penstock.frontends.sql.plan.context import Planning
from penstock.frontends.sql.plan.statements.sinks import write_table
from penstock.graph.nodes import Port, Union


@dataclass(frozen=True)
class Answer:
    """The results of the queries of a shape.

    Args:
        shape: the id of the shape.
        sink: the table into which they go.
        relation: the results.
        planning: the planning of the shape.
        place: where errors point.
        ended: the stream of the queries that have ended, where their condition says so.
    """

    shape: str
    sink: str
    relation: Relation
    planning: Planning
    place: Any
    ended: Port | None = None


def write_answers(planning: Planning, answers: list[Answer], own: int) -> dict[str, str]:
    """Writes all results. Records of one form share a sink of the table's name; each changing table has one of its own.

    Args:
        planning: the planning of all standing queries.
        answers: the results, those of the flow's own text first.
        own: how many are of its own text: where one of them cannot be written, that is an error.

    Returns:
        Why the results of shapes cannot be written, by the id of the shape.
    """
    tables: dict[str, dict[Any, list[Answer]]] = {}
    for each in answers:
        output = each.planning.output(each.relation.port)
        alike = str(output.schema) if output.changes is None else each.shape
        tables.setdefault(each.sink.lower(), {}).setdefault(alike, []).append(each)
    mine, failed = {each.shape for each in answers[:own]}, dict[str, str]()
    for forms in tables.values():
        for at, group in enumerate(forms.values()):
            try:
                _write(planning, group, is_first=at == 0)
            except SqlError as error:
                if any(each.shape in mine for each in group):
                    raise
                failed |= {each.shape: str(error) for each in group}
    return failed


def _write(planning: Planning, group: list[Answer], *, is_first: bool) -> None:
    """Results of one form."""
    first = group[0]
    relation = first.relation if len(group) == 1 else _together(planning, group)
    step = "" if is_first else f"{first.sink}-{first.shape}"
    write_table(first.planning, first.sink, (), relation, first.place, step)


def _together(planning: Planning, group: list[Answer]) -> Relation:
    first = group[0]
    ports = tuple(each.relation.port for each in group)
    port = planning.add(Union(planning.step(f"into.{first.sink}"), ports), first.place)
    return planning.relation(port)
