"""MATCH_RECOGNIZE: the clause as the step of row patterns."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from penstock.errors import FlowError
from penstock.frontends.patterns.row_text import read_rows
from penstock.frontends.sql.expr.intervals import micros_of
from penstock.frontends.sql.expr.scope import Relation, VisibleColumn
from penstock.frontends.sql.expr.translate import Translator
from penstock.frontends.sql.plan.context import Planning
from penstock.frontends.sql.plan.relations.from_clause import RELATIONS, aliased, plan_relation
from penstock.frontends.sql.plan.windows.windows import settled
from penstock.graph.expr import Call, Column, Expr, GetField, lit
from penstock.graph.nodes import TIMED_OUT, MatchRows, Port, Union, WithColumns
from penstock.graph.order import Term
from penstock.graph.patterns.pattern import AfterMatch, Skip
from penstock.graph.patterns.row_pattern import PAST_LAST_ROW, Definitions, RowPattern, RowsPerMatch, Subsets
from penstock.graph.patterns.tree import Part, stages_of

ROWS = {
    "ONE": RowsPerMatch.ONE,
    "ALL": RowsPerMatch.ALL,
    "SHOW EMPTY MATCHES": RowsPerMatch.ALL,
    "OMIT EMPTY MATCHES": RowsPerMatch.ALL_OMIT_EMPTY,
    "WITH UNMATCHED ROWS": RowsPerMatch.ALL_WITH_UNMATCHED,
}
SKIPS = {"TO FIRST": Skip.TO_FIRST, "TO LAST": Skip.TO_LAST}
LOOKS = ("first", "last", "prev", "next", "classifier", "match_number", "final", "running")
"""Functions that look at the rows of a match."""
TIMED_OUT_COLUMN = "timed_out"
"""The column that says whether a row is of a partial match whose time ran out."""


def variable(tree: exp.Expr) -> str:
    """A variable as the pattern has it: in capitals, unless it stands in quotes."""
    return tree.name if tree.args.get("quoted") else tree.name.upper()


def in_capitals(pattern: str) -> str:
    """The text of a pattern with its names in capitals, unless they stand in quotes.

    >>> in_capitals('a b+ "c"')
    'A B+ "c"'
    """
    made, quote = "", ""
    for sign in pattern:
        if quote:
            quote = "" if sign == quote else quote
        elif sign in '"`':
            quote = sign
        made += sign if quote or sign in '"`' else sign.upper()
    return made


@dataclass(frozen=True)
class Clause:
    """A clause over the relation that it reads."""

    planning: Planning
    tree: exp.MatchRecognize
    relation: Relation

    def planned(self) -> Relation:
        """The relation of its matches."""
        time, terms = self._order()
        keys = tuple(self._field(each, "PARTITION BY") for each in self.tree.args.get("partition_by") or ())
        pattern = self._pattern(terms)
        node = MatchRows(
            self.planning.step("match"),
            (self.relation.port,),
            keys,
            pattern=pattern,
            define=self._define(pattern),
            measures=self._measures(pattern, time),
        )
        port = self.planning.add(node, self.tree)
        if self.tree.args.get("timeouts") is not None:
            port = self._with_timeouts(port, pattern)
        return Relation(port, self._columns(port, keys, (time, *(t.column for t in terms)), pattern))

    def _columns(
        self, port: Port, keys: tuple[str, ...], order: tuple[str, ...], pattern: RowPattern
    ) -> tuple[VisibleColumn, ...]:
        """The columns: of one row the partition and the measures; of all rows also the order before them, and all others after them."""
        names = self.planning.schema(port).names
        known = {c.field: c.name for c in self.relation.columns if not c.hidden}
        if not pattern.rows.is_one:
            fields = set(self.planning.schema(self.relation.port).names)
            first = [n for n in dict.fromkeys((*keys, *order)) if n in names]
            measures = [n for n in names if n not in fields]
            names = (*first, *measures, *(n for n in names if n in known and n not in first))
        return tuple(VisibleColumn("", known.get(n, n), n) for n in names)

    # -- the order --------------------------------------------------------------------------------------------------

    def _order(self) -> tuple[str, tuple[Term, ...]]:
        """The field of the event time, and what decides among equal times."""
        text, given = self.planning.text, self.planning.output(self.relation.port).event_time
        order = self.tree.args.get("order")
        if order is None or not order.expressions:
            raise text.error(self.tree, "expected ORDER BY the event time in MATCH_RECOGNIZE")
        terms = [Term(self._field(each.this, "ORDER BY"), bool(each.args.get("desc"))) for each in order.expressions]
        times = {*self.relation.times, *(() if given is None else (given.column,))}
        if terms[0].column not in times or terms[0].descending:
            known = ", ".join(sorted(times)) or "none: say WATERMARK FOR a column of the table"
            raise text.error(order, f"expected the event time first in ORDER BY, ascending; event times are {known}")
        return terms[0].column, tuple(terms[1:])

    def _field(self, tree: exp.Expr, where: str) -> str:
        """The field of a column."""
        if isinstance(tree, exp.Column) and isinstance(tree.this, exp.Identifier):
            scope = self.planning.scope(self.relation)
            found = scope.find(tree.table, tree.name, tree)
            if found is None:
                raise scope.unknown(tree.table, tree.name, tree)
            return found.field
        raise self.planning.text.error(
            tree, f"expected a column in {where} of MATCH_RECOGNIZE; compute it in a subquery before"
        )

    # -- the pattern ------------------------------------------------------------------------------------------------

    def _pattern(self, order: tuple[Term, ...]) -> RowPattern:
        rows, within = self.tree.args.get("rows"), self.tree.args.get("within")
        span = None if within is None else micros_of(self.planning.text, within, "how long a match may take")
        root, subsets = self._root(), self._subsets()
        kind = RowsPerMatch.ONE if rows is None else ROWS[rows.name]
        return self.planning.adding(
            lambda: RowPattern(root, subsets, kind, self._after(), span, order), self.tree.args["pattern"]
        )

    def _root(self) -> Part:
        given = self.tree.args["pattern"]
        try:
            return read_rows(in_capitals(given.name))
        except FlowError as error:
            raise self.planning.text.error(given, str(error).split("\n")[0]) from None

    def _subsets(self) -> Subsets:
        return tuple(
            (variable(each.args["alias"]), tuple(variable(m) for m in each.this.expressions))
            for each in self.tree.args.get("subsets") or ()
        )

    def _after(self) -> AfterMatch:
        given = self.tree.args.get("after")
        if given is None or given.name == "PAST LAST ROW":
            return PAST_LAST_ROW
        if given.name == "TO NEXT ROW":
            return AfterMatch(Skip.TO_NEXT)
        return AfterMatch(SKIPS[given.name], variable(self.tree.args["after_variable"]), must_exist=True)

    # -- the expressions --------------------------------------------------------------------------------------------

    def _define(self, pattern: RowPattern) -> Definitions:
        made = MatchTranslator(self, pattern, "").translator()
        return tuple(
            (variable(each.args["alias"]), made.expr(each.this)) for each in self.tree.args.get("define") or ()
        )

    def _measures(self, pattern: RowPattern, time: str) -> Definitions:
        made = MatchTranslator(self, pattern, time).translator()
        return tuple((each.args["alias"].name, made.expr(each.this)) for each in self.tree.args.get("measures") or ())

    # -- partial matches --------------------------------------------------------------------------------------------

    def _with_timeouts(self, port: Port, pattern: RowPattern) -> Port:
        """The matches and the partial ones whose time ran out, with a column that says which a row is."""
        place = self.tree.args["timeouts"]
        if pattern.within is None or not pattern.rows.is_one:
            raise self.planning.text.error(
                self.tree, "WITH TIMEOUT ROWS expects ONE ROW PER MATCH and WITHIN after the pattern"
            )
        marked = [
            self.planning.add(WithColumns(self.planning.step(name), (each,), ((TIMED_OUT_COLUMN, lit(timed)),)), place)
            for name, each, timed in (("matched", port, False), ("late", replace(port, name=TIMED_OUT), True))
        ]
        return self.planning.add(Union(self.planning.step("matches"), tuple(marked)), place)


@dataclass(frozen=True)
class MatchTranslator:
    """Translates the expressions of a clause: columns of variables, and functions that look at the rows of a match."""

    clause: Clause
    pattern: RowPattern
    time: str
    """The field of the event time; empty where MATCH_ROWTIME() has no meaning."""

    def translator(self) -> Translator:
        """A translator of the query's own, with these beside."""
        made = self.clause.planning.translator(self.clause.relation)
        made.swap = lambda tree: self._swapped(made, tree)
        return made

    @property
    def _variables(self) -> frozenset[str]:
        return frozenset(
            (*(stage.name for stage in stages_of(self.pattern.root)), *(n for n, _ in self.pattern.subsets))
        )

    def _swapped(self, translator: Translator, tree: exp.Expr) -> Expr | None:
        if isinstance(tree, exp.Column):
            return self._column(translator, tree)
        if not isinstance(tree, exp.Anonymous):
            return None
        name = str(tree.this.name if isinstance(tree.this, exp.Identifier) else tree.this).lower()
        if name in ("match_rowtime", "match_proctime"):
            return self._time_of_match(translator, tree)
        if name not in LOOKS:
            return None
        if name == "classifier":
            return Call(name, tuple(Column(variable(each.this)) for each in tree.expressions))
        return Call(name, tuple(map(translator.expr, tree.expressions)))

    def _column(self, translator: Translator, tree: exp.Column) -> Expr | None:
        """A column of the rows of a variable; None for all others."""
        owner = tree.args.get("table")
        if owner is None or variable(owner) not in self._variables:
            return None
        if isinstance(tree.this, exp.Star):
            return GetField(Column(variable(owner)), "*")
        found = translator.scope.find("", tree.name, tree)
        if found is None:
            raise translator.scope.unknown("", tree.name, tree)
        return GetField(Column(variable(owner)), found.field)

    def _time_of_match(self, translator: Translator, tree: exp.Expr) -> Expr:
        if not self.time:
            raise translator.text.error(tree, "MATCH_ROWTIME() is the time of a match; expected it in MEASURES")
        return Call("last", (Column(self.time),))


def plan_match(planning: Planning, tree: exp.MatchRecognize) -> Relation:
    """The relation of MATCH_RECOGNIZE over an item of FROM."""
    relation = settled(planning, plan_relation(planning, tree.this), tree)
    return aliased(planning, tree, Clause(planning, tree, relation).planned())


RELATIONS[exp.MatchRecognize] = plan_match
