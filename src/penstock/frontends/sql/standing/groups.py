"""The plans of standing queries: one for each shape, over the records that its queries may want."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from penstock.errors import SqlError
from penstock.frontends.sql.catalog.catalog import StreamTable
from penstock.frontends.sql.expr.scope import Relation
from penstock.frontends.sql.plan.context import Planning
from penstock.frontends.sql.plan.queries.exact import exact
from penstock.frontends.sql.plan.queries.query import plan_query
from penstock.frontends.sql.plan.relations.from_clause import plan_table
from penstock.frontends.sql.plan.statements.statements import ACTIONS, FINISHING, Script, planned
from penstock.frontends.sql.standing.reading import CONSTANTS, KnownShapes, ReadQuery
from penstock.frontends.sql.standing.results import Answer, write_answers
from penstock.frontends.sql.standing.shapes import QUERY, VERSION, Shape
from penstock.frontends.sql.standing.snapshots import add_snapshot_match
from penstock.frontends.sql.text.source import SqlText
from penstock.frontends.sql.text.statements import CreateStandingQuery
from penstock.graph import types as t
from penstock.graph.endpoints.basic import items
from penstock.graph.endpoints.log import rule_topic
from penstock.graph.expr import Column, Expr, as_expr, col, lit
from penstock.graph.logic.standing import AwaitPlan, KeepQueries, MatchQueries
from penstock.graph.nodes import (
    Feedback,
    FlatMap,
    Port,
    Process,
    Rules,
    Select,
    Source,
    Trigger,
    Union,
    Where,
    WithBroadcast,
)
from penstock.graph.nodes.policy import DEAD_LETTER, OnError
from penstock.graph.nodes.relational.trigger import DROP, END, ENDED, ENDED_AT, EVERY, OP, UNTIL
from penstock.graph.nodes.window import EVENT, PROCESSING
from penstock.graph.schema import Schema

TOPIC = "standing.queries.topic"
"""SET gives the topic by which queries are added and dropped while the flow runs."""
STEP = "queries"


def add(script: Script, statement: CreateStandingQuery) -> None:
    """CREATE STANDING QUERY: it is planned with the others of its shape, when all statements are read."""
    if statement.name in script.standing:
        raise script.text.error(statement.at, f"standing query {statement.name!r} is there already; name it otherwise")
    script.standing[statement.name] = statement


@dataclass(frozen=True)
class Planned:
    """A shape that is to be planned: the text and the first statement of it, which errors point to."""

    shape: Shape
    text: SqlText
    statement: CreateStandingQuery


@dataclass
class Group:
    """All standing queries of a script.

    Args:
        script: the script.
    """

    script: Script
    known: KnownShapes = field(default_factory=KnownShapes)
    shapes: dict[str, Planned] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def plan(self) -> None:
        """Plans the shapes of the queries in the text, and of those that the topic is known to hold."""
        script = self.script
        rows = [self._change(script.text, each) for each in script.standing.values()]
        own = len(self.shapes)
        self._add_topic()
        if not self.shapes:
            return
        planning = script.planning(STEP)
        changes, loop = self._changes(planning, rows)
        kept = planning.add(Rules(planning.step("kept"), (changes,), (QUERY,), logic=KeepQueries()), self._place)
        shapes = [ShapePlan(script, each, changes, kept) for each in self.shapes.values()]
        made = [each.plan() for each in shapes[:own]]
        made += [answer for each in shapes[own:] if (answer := self._tried(each)) is not None]
        script.shapes |= dict.fromkeys(self.shapes, "") | self.failed | write_answers(planning, made, own)
        self._know_plans(planning)
        if loop is not None:
            self._feed(planning, loop, changes, [each.ended for each in made if each.ended is not None])

    def _add_topic(self) -> None:
        """The shapes of the queries in the topic; what cannot be read there becomes a dead letter when the flow reads it."""
        topic = self.script.session.settings.get(TOPIC)
        for text in self.script.topic_queries(topic) if topic else ():
            with contextlib.suppress(SqlError):
                self._change(text, self.known.read(text))

    def _tried(self, plan: ShapePlan) -> Answer | None:
        """The plan of a shape of the topic; one that cannot be planned keeps no other from running."""
        try:
            return plan.plan()
        except SqlError as error:
            self.failed[plan.shape.id] = str(error)
            return None

    def _know_plans(self, planning: Planning) -> None:
        """Says to the step that has queries wait which shapes have a plan."""
        name = f"{STEP}.wait"
        node = next((n for n in planning.builder.nodes if n.name == name), None)
        if isinstance(node, Process):
            plans = frozenset(shape for shape, why in self.script.shapes.items() if not why)
            planning.builder.replace(replace(node, logic=AwaitPlan(plans)))

    def _change(self, text: SqlText, statement: CreateStandingQuery) -> tuple[Any, ...]:
        shape = self.known.shape(text, statement)
        self.shapes.setdefault(shape.id, Planned(shape, text, statement))
        return self.known.change(text, statement)

    @property
    def _place(self) -> Any:
        return next(iter(self.shapes.values())).statement.form.query

    def _changes(self, planning: Planning, rows: list[tuple[Any, ...]]) -> tuple[Port, Port | None]:
        """The queries of the script, those of the topic, and those that end by themselves; and the loop that says the latter."""
        place = self._place
        parts = [planning.add(Source(planning.session.step(STEP), (), items(rows, CONSTANTS)), place)]
        topic = self.script.session.settings.get(TOPIC)
        if topic:
            on_error = OnError(DEAD_LETTER)
            given = planning.add(Source(planning.step("topic"), (), rule_topic(topic), on_error=on_error), place)
            read = planning.add(
                FlatMap(planning.step("read"), (given,), ReadQuery(), CONSTANTS, on_error=on_error), place
            )
            wait = Process(planning.step("wait"), (read,), (QUERY,), logic=AwaitPlan(frozenset()), schema=CONSTANTS)
            parts.append(planning.add(wait, place))
        loop = None
        if topic or any(
            each.shape.form.ends for each in self.shapes.values()
        ):  # the sources stay as they are when a shape is added
            loop = planning.add(Feedback(planning.step("ended"), (), CONSTANTS), place)
            parts.append(loop)
        return planning.add(Union(planning.step("all"), tuple(parts)), place), loop

    def _feed(self, planning: Planning, loop: Port, changes: Port, ended: list[Port]) -> None:
        """What has ended is fed back: the query is not matched any more, and its totals go."""
        if not ended:
            ended = [planning.add(Where(planning.step("none"), (changes,), lit(False)), self._place)]
        fed = ended[0] if len(ended) == 1 else planning.add(Union(planning.step("ends"), tuple(ended)), self._place)
        planning.builder.feed(loop, fed)


@dataclass(frozen=True)
class ShapePlan:
    """The plan of a shape: records with the queries that may want them, the query itself over these, and its trigger."""

    script: Script
    given: Planned
    changes: Port
    kept: Port

    def plan(self) -> Answer:
        """The results, and what has ended.

        Raises:
            SqlError: it cannot be planned; with the place in the first statement of the shape.
        """
        with planned(self.given.text, self.given.statement.at):
            return self._plan()

    @property
    def shape(self) -> Shape:
        """The shape."""
        return self.given.shape

    @property
    def place(self) -> Any:
        """Where errors point."""
        return self.given.statement.form.query

    def _plan(self) -> Answer:
        planning = replace(self.script.planning(f"{STEP}.{self.shape.id}"), text=self.given.text)
        events = plan_table(planning, self.shape.table, self.place)
        self._check(planning, events)
        matched = self._matched(planning, events)
        catalog = planning.catalog.child()
        catalog.define(StreamTable(self.shape.table, matched))
        inside = replace(planning, catalog=catalog)
        relation = exact(inside, plan_query(inside, _without_star(self.shape.tree, events)), self.place)
        return self._triggered(planning, events, relation)

    def _check(self, planning: Planning, events: Relation) -> None:
        stream, statement = planning.output(events.port), self.given.statement
        if QUERY in stream.schema:
            raise planning.text.error(
                self.place, f"table {self.shape.table!r} has a column {QUERY!r}, the name of the column that says of which query a row is"
            )  # fmt: skip
        if statement.until is not None and stream.event_time is None:
            raise planning.text.error(
                statement.at, f"UNTIL goes by event time; give table {self.shape.table!r} a WATERMARK"
            )
        if stream.changes is not None and not self.shape.form.snapshot:
            raise planning.text.error(
                self.place, f"table {self.shape.table!r} changes, and a query that begins in the middle of it must know its rows: say WITH SNAPSHOT"
            )  # fmt: skip

    def _matched(self, planning: Planning, events: Relation) -> Port:
        stream = planning.output(events.port)
        fields = {c.name.lower(): c.field for c in events.columns}
        equal = tuple(
            (fields[name.lower()], at)
            for name, at in self.shape.equal
            if name.lower() in fields and _is_alike(stream.schema, fields[name.lower()], self.shape, at)
        )
        time = stream.event_time.column if stream.event_time is not None else ""
        if self.shape.form.snapshot:
            return add_snapshot_match(planning, self.shape, events, self.changes, equal, time)
        schema = Schema((*stream.schema.fields, t.Field(QUERY, t.STRING), *self.shape.parameters))
        logic = MatchQueries(self.shape.id, stream.schema.names, equal, time)
        return planning.add(WithBroadcast(planning.step("match"), (events.port, self.kept), logic, schema), self.place)

    def _triggered(self, planning: Planning, events: Relation, relation: Relation) -> Answer:
        """The results when the query fires, without the constants that its conditions needed."""
        version = next((c.field for c in relation.columns if c.name == VERSION), "")
        form, is_timed = self.shape.form, planning.output(events.port).event_time is not None
        clock = EVENT if is_timed and not form.by_proctime else PROCESSING
        settings = planning.add(self._settings(planning), self.place)
        node = Trigger(
            planning.step("trigger"),
            (relation.port, settings),
            (QUERY,),
            clock=clock,
            when=self._condition(planning, relation, form.when, "WHEN"),
            until=self._condition(planning, relation, form.until, "UNTIL"),
            whole=form.snapshot and (form.repeats or form.when is not None),
            grows=not self.shape.is_aggregated and planning.output(events.port).changes is None,
            version=version,
        )
        fired = planning.add(node, self.place)
        shown = tuple(c for c in relation.columns if c.name not in (*self.shape.added, VERSION))
        if self.shape.added:
            fields = tuple((c.field, Column(c.field)) for c in shown)
            fired = planning.add(Select(planning.step("shown"), (fired,), fields), self.place)
        answer = replace(relation, port=fired, columns=shown, times=frozenset(), bounds=None)
        ended = None if not form.ends else self._ended(planning, Port(node.name, ENDED))
        return Answer(self.shape.id, form.sink, answer, planning, self.place, ended)

    def _settings(self, planning: Planning) -> Select:
        """What the changes of queries say to the trigger of this shape: queries of other shapes are none of its own."""
        own = as_expr(f"case when shape = '{self.shape.id}' then op else '{DROP}' end")
        columns: tuple[tuple[str, Expr], ...] = (
            (QUERY, col(QUERY)),
            (OP, own),
            (EVERY, col(EVERY)),
            (UNTIL, col(UNTIL)),
        )
        return Select(planning.step("settings"), (self.changes,), columns)

    def _condition(self, planning: Planning, relation: Relation, tree: Any, word: str) -> Expr | None:
        """A condition on the rows of the result."""
        if tree is None:
            return None
        aggregate = next(
            (e for e in tree.find_all(exp.Anonymous) if str(e.this).lower() in ("count", "sum", "min", "max", "avg")),
            None,
        )
        if aggregate is not None:
            raise planning.text.error(
                aggregate,
                f"{word} reads the columns of the result; give the aggregate a name in the select list, and use that",
            )
        return planning.translator(relation).checked(tree.this, planning.schema(relation.port))[0]

    def _ended(self, planning: Planning, port: Port) -> Port:
        """The queries that have ended, as changes."""
        columns: dict[str, Expr] = {
            QUERY: col(QUERY),
            OP: lit(END),
            "shape": lit(self.shape.id),
            "constants": as_expr("cast(array() as array<string>)"),
            EVERY: as_expr("cast(null as bigint)"),
            UNTIL: col(ENDED_AT),
            "version": as_expr("cast(null as bigint)"),
        }
        return planning.add(Select(planning.step("ends"), (port,), tuple(columns.items())), self.place)


def _without_star(tree: Any, events: Relation) -> Any:
    """A query with the columns of its table in place of `*`: those of the query and its constants are not meant."""

    def written(each: Any) -> Iterable[Any]:
        star = each if isinstance(each, exp.Star) else each.this if isinstance(each, exp.Column) else None
        if not isinstance(star, exp.Star):
            return [each]
        left_out = {c.name.lower() for c in (star.args.get("except_") or ())}
        names = [c.name for c in events.columns if not c.hidden and c.name.lower() not in left_out]
        return [exp.column(exp.to_identifier(name, quoted=True)) for name in names]

    made = tree.copy()
    made.set("expressions", [one for each in made.expressions for one in written(each)])
    return made


def _is_alike(schema: Schema, field: str, shape: Shape, at: int) -> bool:
    """Whether equal values of a field and of a constant are the same in Python."""
    kind, constant = schema.field(field).type, shape.kinds[at]
    return (kind == t.STRING and constant == "s") or (kind in t.INTEGERS and constant == "i")


def plan_standing(script: Script) -> None:
    """Plans all standing queries of a script."""
    if script.standing or script.session.settings.get(TOPIC):
        Group(script).plan()


ACTIONS[CreateStandingQuery] = add
FINISHING.append(plan_standing)
