"""A relation with the columns of its query and no others, as tables, unions and sinks take it."""

from __future__ import annotations

from dataclasses import replace

from penstock.frontends.sql.expr.scope import Relation
from penstock.frontends.sql.plan.context import Planning
from penstock.frontends.sql.plan.queries.projection import same_fields
from penstock.frontends.sql.plan.windows.ranking import unranked
from penstock.frontends.sql.plan.windows.windows import settled
from penstock.frontends.sql.text.source import Place
from penstock.graph.expr import Column
from penstock.graph.nodes import Select


def exact(planning: Planning, relation: Relation, place: Place) -> Relation:
    """A relation whose stream has its columns and no other fields, under the names that the query gives them."""
    relation = unranked(planning, settled(planning, relation, place))
    columns = tuple(c for c in relation.columns if c.field not in relation.clocks and not c.hidden)
    wanted = tuple((c.name, Column(c.field)) for c in columns)
    if same_fields(wanted, planning.schema(relation.port).names):
        return relation
    port = planning.add(Select(planning.step("columns"), (relation.port,), wanted), place)
    names = {c.field: c.name for c in columns}
    times = frozenset(names[f] for f in relation.times if f in names)
    bounds = relation.bounds
    kept = None if bounds is None or not set(bounds) <= set(names) else (names[bounds[0]], names[bounds[1]])
    return Relation(port, tuple(replace(c, field=c.name) for c in columns), times=times, bounds=kept)
