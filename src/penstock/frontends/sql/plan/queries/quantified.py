"""Conditions over the rows of a subquery as values: IN, EXISTS, ANY and ALL are true, false or unknown, wherever an expression may stand.

Where a subquery shares nothing but equalities with the query around it, its rows are counted by what it shares, and joined with the rows
around it. Else a row is joined twice: with the rows that make the condition true, and without any.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sqlglot import exp

from penstock.frontends.sql.catalog.catalog import StreamTable
from penstock.frontends.sql.expr.scope import Relation, VisibleColumn
from penstock.frontends.sql.expr.translate import Swap
from penstock.frontends.sql.plan.context import Planning, fresh
from penstock.frontends.sql.plan.joins.joins import JoinPart, joined
from penstock.frontends.sql.plan.queries.aggregate_calls import is_aggregated
from penstock.frontends.sql.plan.queries.correlation import (
    KEY,
    check_sides,
    decorrelated,
    goes_by_keys,
    inside_of,
    is_plain_query,
    marked,
    qualified,
    reads_around,
    unwrapped,
)
from penstock.frontends.sql.plan.queries.exact import exact
from penstock.frontends.sql.plan.queries.query import plan_query
from penstock.frontends.sql.plan.queries.scalars import beside, scalar_value
from penstock.graph.expr import Call, Case, Column, Expr, lit
from penstock.graph.nodes import Port, Select, Union

_OPERATORS: dict[type, str] = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_TREES = {name: kind for kind, name in _OPERATORS.items()}
_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MEMBER, _OPERAND, _MARK = "$member", "$operand", "$mark"


@dataclass(frozen=True)
class SubqueryTest:
    """Whether a subquery has a row, or a row that compares with a value in a way.

    Args:
        operator: how the values are compared with a row; empty for EXISTS.
        values: what is compared.
        query: the subquery.
        negated: whether the opposite is meant: `x > ALL (q)` is not `x <= ANY (q)`.
    """

    operator: str
    values: tuple[exp.Expr, ...]
    query: exp.Expr
    negated: bool = False


def test_of(tree: exp.Expr) -> SubqueryTest | None:
    """The test that an expression is; None where it is none."""
    if isinstance(tree, exp.Exists):
        return SubqueryTest("", (), inner_query(tree.this))
    if isinstance(tree, exp.In) and (query := _query_of(tree)) is not None:
        return SubqueryTest("=", _values_of(tree.this), inner_query(query))
    other = tree.expression if type(tree) in _OPERATORS else None
    if not isinstance(other, exp.Any | exp.All) or not isinstance(inner_query(other.this), exp.Query | exp.Values):
        return None
    operator, every = _OPERATORS[type(tree)], isinstance(other, exp.All)
    return SubqueryTest(
        _OPPOSITE[operator] if every else operator, _values_of(tree.this), inner_query(other.this), every
    )


def _query_of(tree: exp.In) -> exp.Expr | None:
    """The subquery of IN (...): a query, or VALUES alone."""
    if tree.args.get("query") is not None:
        query: exp.Expr = tree.args["query"]
        return query
    listed = tree.expressions
    return listed[0] if len(listed) == 1 and isinstance(listed[0], exp.Values) else None


def inner_query(tree: exp.Expr) -> exp.Expr:
    """A query without the parentheses around it."""
    while isinstance(tree, exp.Subquery | exp.Paren) and not tree.args.get("alias"):
        tree = tree.this
    return tree


def _values_of(tree: exp.Expr) -> tuple[exp.Expr, ...]:
    tree = unwrapped(tree)
    return tuple(tree.expressions) if isinstance(tree, exp.Tuple) else (tree,)


def subqueries_in(tree: exp.Expr) -> list[exp.Expr]:
    """The subqueries of an expression: those of one value, and tests."""
    if isinstance(tree, exp.Subquery) or test_of(tree) is not None:
        return [tree]
    if isinstance(tree, exp.Query):
        return []
    return [each for part in tree.iter_expressions() for each in subqueries_in(part)]


def with_subqueries(planning: Planning, relation: Relation, trees: Iterable[exp.Expr]) -> tuple[Relation, Swap | None]:
    """A relation with the values of subqueries as columns, and what the subqueries stand for in expressions."""
    found = [each for tree in trees for each in subqueries_in(tree)]
    if not found:
        return relation, None
    values: dict[int, Expr] = {}
    for each in found:
        relation, values[id(each)] = subquery_value(planning, relation, each)
    return relation, lambda tree: values.get(id(tree))


def subquery_value(
    planning: Planning, relation: Relation, tree: exp.Expr, swap: Swap | None = None
) -> tuple[Relation, Expr]:
    """A subquery as a value; `swap` says what the values stand for that a test compares, where they are computed already."""
    test = test_of(tree)
    if test is not None:
        return _Test(planning, test, tree).planned(relation, swap)
    assert isinstance(tree, exp.Subquery)
    return scalar_value(planning, relation, tree)


@dataclass(frozen=True)
class _Test:
    """The planning of one test."""

    planning: Planning
    test: SubqueryTest
    tree: exp.Expr

    def planned(self, relation: Relation, swap: Swap | None) -> tuple[Relation, Expr]:
        """The relation, and the test as an expression over it."""
        relation, operands = self._operands(relation, swap)
        query = self._shortened(self.test.query)
        if self._is_one_row(query):
            relation, made = self._of_one_row(relation, query, operands)
        elif self._goes_by_keys(relation, query):
            relation, made = self._by_keys(relation, query, operands)
        else:
            relation, made = self._by_marks(relation, query, operands)
        self.planning.translator(relation).type(self.tree, made, self.planning.schema(relation.port))
        return relation, Call("not", (made,)) if self.test.negated else made

    def _operands(self, relation: Relation, swap: Swap | None) -> tuple[Relation, list[VisibleColumn]]:
        """The relation with what is compared as fields."""
        if not self.test.values:
            return relation, []
        if swap is None:
            relation, swap = with_subqueries(self.planning, relation, self.test.values)
        schema = self.planning.schema(relation.port)
        translator = self.planning.translator(relation, swap)
        columns: dict[str, Expr] = {n: Column(n) for n in schema.names}
        made = []
        for each in self.test.values:
            field = fresh("operand", columns)
            columns[field] = translator.checked(each, schema)[0]
            made.append(VisibleColumn(f"{_OPERAND}{field}", _OPERAND, field, hidden=True))
        port = self.planning.add(
            Select(self.planning.step("operand"), (relation.port,), tuple(columns.items())), self.tree
        )
        return replace(relation, port=port, columns=(*relation.columns, *made)), made

    def _shortened(self, query: exp.Expr) -> exp.Expr:
        """EXISTS asks for rows alone: not for what is in them, in which order, or how many there are above one."""
        if self.test.operator or not isinstance(query, exp.Select):
            return query
        made, limit = query.copy(), query.args.get("limit")
        if limit is not None and isinstance(limit.expression, exp.Literal) and str(limit.expression.this) != "0":
            made.set("limit", None)
        if not any(made.args.get(name) for name in ("limit", "offset", "qualify")):
            made.set("order", None)
            made.set("distinct", None)
        if not self._is_one_row(query) and not made.args.get("qualify"):
            made.set("expressions", [exp.alias_(exp.Literal.number(1), _MEMBER, quoted=True)])
        return made

    def _is_one_row(self, query: exp.Expr) -> bool:
        """Whether it is an aggregate over all rows, which has one row whatever comes."""
        if not isinstance(query, exp.Select) or any(query.args.get(n) for n in ("group", "having", "limit", "offset")):
            return False
        return is_aggregated(query, self.planning.catalog)

    def _of_one_row(self, relation: Relation, query: exp.Expr, operands: list[VisibleColumn]) -> tuple[Relation, Expr]:
        if not self.test.operator:
            return relation, lit(True)
        self._check_width(1, len(operands))
        relation, value = scalar_value(self.planning, relation, exp.Subquery(this=query))
        return relation, Call(self.test.operator, (Column(operands[0].field), value))

    def _goes_by_keys(self, relation: Relation, query: exp.Expr) -> bool:
        """Whether rows can be counted by what is shared: equalities, and one value at most."""
        if len(self.test.values) > 1:
            return False
        if not isinstance(query, exp.Select) or query.args.get("from_") is None:
            check_sides(self.planning, relation, query)
            return True
        if not reads_around(self.planning, relation, query):
            return True
        if not goes_by_keys(self.planning, relation, query):
            return False
        for name in ("limit", "offset", "qualify", "having") if not query.args.get("group") else ("limit", "offset"):
            if query.args.get(name) is not None:
                raise self._misfit(f"expected a subquery without {name.upper()}, since it reads the query around it")
        return True

    def _misfit(self, message: str) -> Exception:
        return self.planning.text.error(self.tree, message)

    def _check_width(self, have: int, wanted: int) -> None:
        if have != wanted:
            columns = "one column" if wanted == 1 else f"{wanted} columns"
            raise self._misfit(f"expected {columns} in the subquery, got {have}")

    # ---- rows counted by what is shared

    def _by_keys(self, relation: Relation, query: exp.Expr, operands: list[VisibleColumn]) -> tuple[Relation, Expr]:
        if isinstance(query, exp.Select):
            query, shared = decorrelated(self.planning, relation, query, query.args.get("group") is not None)
        else:
            shared = list[exp.Expr]()
        rows = _Rows.of(self.planning, query, shared, self.test.operator, self.tree)
        relation, found = beside(rows.planning, relation, rows.totals(), shared, self.tree)
        many = Call(">", (Call("coalesce", (Column(found[0].field), lit(0))), lit(0)))
        if not operands:
            return relation, many
        value = Column(operands[0].field)
        if self.test.operator == "=":
            asked = [exp.column(operands[0].name, operands[0].qualifier), *shared]
            relation, hits = beside(rows.planning, relation, rows.hits(), asked, self.tree)
            is_true: Expr = Call("isnotnull", (Column(hits[0].field),))
        else:
            is_true = _beyond(self.test.operator, value, *(Column(c.field) for c in found[2:]))
        unknown = Call("or", (Call("isnull", (value,)), Call(">", (Column(found[1].field), lit(0)))))
        return relation, Case(
            ((is_true, lit(True)), (Call("not", (many,)), lit(False)), (unknown, lit(None).cast("boolean"))), lit(False)
        )

    # ---- rows that have a match, and rows that have none

    def _by_marks(self, relation: Relation, query: exp.Expr, operands: list[VisibleColumn]) -> tuple[Relation, Expr]:
        rows = self._rows_alone(relation, query, len(operands))
        inner, outside = inside_of(self.planning, relation, rows, self.tree)
        shared = [qualified(self.planning, inner, each) for each in outside]
        if not operands:
            return self._mark(relation, inner, shared)
        self._check_width(len(rows.expressions), len(operands))
        trees = [exp.column(c.name, c.qualifier) for c in operands]
        theirs = [qualified(self.planning, inner, unwrapped(each)) for each in rows.expressions]
        asked = self._compared(trees, theirs)
        relation, is_true = self._mark(relation, inner, [*shared, asked])
        unknown = exp.Is(this=exp.Paren(this=asked.copy()), expression=exp.Null())
        relation, is_unknown = self._mark(relation, inner, [*shared, unknown])
        return relation, Case(((is_true, lit(True)), (is_unknown, lit(None).cast("boolean"))), lit(False))

    def _rows_alone(self, relation: Relation, query: exp.Expr, width: int) -> exp.Select:
        """The subquery as SELECT ... FROM ... WHERE; one that is more than that stands in FROM."""
        if isinstance(query, exp.Select) and query.args.get("from_") is not None:
            if is_plain_query(self.planning, query) and not query.args.get("distinct"):
                return query
            if reads_around(self.planning, relation, query):
                raise self._misfit(
                    "expected SELECT ... FROM ... WHERE in a subquery that reads the query around it by more than equalities"
                )
        names = [f"{_MEMBER}{at}" for at in range(width)]
        inner = exp.Subquery(this=query.copy(), alias=_alias("$rows", names))
        return exp.select(*(exp.column(n, quoted=True) for n in names)).from_(inner)

    def _compared(self, values: list[exp.Column], theirs: list[exp.Expr]) -> exp.Expr:
        """The comparison of values with a row."""
        operator = self.test.operator
        if len(values) > 1 and operator not in ("=", "<>"):
            raise self._misfit(f"expected = or <> between rows of values, got {operator}")
        whole: exp.Expr | None = None
        for mine, their in zip(values, theirs, strict=True):
            each = _TREES[operator](this=mine, expression=exp.Paren(this=their))
            joint = exp.And if operator == "=" else exp.Or
            whole = each if whole is None else joint(this=whole, expression=each)
        assert whole is not None
        return whole

    def _mark(self, relation: Relation, inner: Relation, conditions: list[exp.Expr]) -> tuple[Relation, Expr]:
        """Each row with whether there is a row of the subquery for which all conditions are true."""
        schema = self.planning.schema(relation.port)
        field = fresh("mark", schema.names)
        ports = tuple(self._side(relation, inner, conditions, how, field) for how in ("semi", "anti"))
        port = self.planning.add(Union(self.planning.step("marked"), ports), self.tree)
        mark = VisibleColumn("", f"{_MARK}{field}", field, hidden=True)
        return replace(relation, port=port, columns=(*relation.columns, mark)), Column(field)

    def _side(self, relation: Relation, inner: Relation, conditions: list[exp.Expr], how: str, field: str) -> Port:
        """The rows that have a match, or those that have none, with a word on it."""
        part = JoinPart(exp.Join(this=self.tree.copy()), marked(inner), how, tuple(conditions))
        made = joined(self.planning, relation, part, None)
        names = self.planning.schema(relation.port).names
        columns = (*((n, Column(n)) for n in names), (field, lit(how == "semi")))
        return self.planning.add(Select(self.planning.step(how), (made.port,), columns), self.tree)


def _beyond(operator: str, value: Expr, low: Expr, high: Expr) -> Expr:
    """Whether a value compares so with the smallest or the largest of many: then it does with one of them."""
    if operator == "<>":
        return Call("or", (Call("<>", (value, low)), Call("<>", (value, high))))
    return Call(operator, (value, high if operator in ("<", "<=") else low))


@dataclass(frozen=True)
class _Rows:
    """The rows of a subquery under a name: they are planned once, and read as often as needed.

    Args:
        planning: the planning that knows the name.
        name: the name.
        keys: the columns that are shared with the query around it.
        operator: how the value in each row is compared; empty where there is none.
    """

    planning: Planning
    name: str
    keys: tuple[str, ...]
    operator: str

    @classmethod
    def of(cls, planning: Planning, query: exp.Expr, shared: list[exp.Expr], operator: str, place: exp.Expr) -> _Rows:
        """The rows of a query whose last columns are shared."""
        name, keys = planning.step("rows"), tuple(f"{KEY}{at}" for at in range(len(shared)))
        rows = plan_query(planning.inside(name), query)
        if operator:
            if len(rows.columns) != 1 + len(keys):
                have = len(rows.columns) - len(keys)
                raise planning.text.error(place, f"expected one column in the subquery, got {have}")
            rows = rows.named("", (_MEMBER, *keys))
        catalog = planning.catalog.child()
        catalog.define(StreamTable(name, exact(planning.inside(name), rows, place).port))
        return cls(planning.inside(catalog=catalog), name, keys, operator)

    def totals(self) -> exp.Select:
        """How many rows there are, how many of them are nulls, and the smallest and the largest."""
        items = [exp.alias_(_call("COUNT", exp.Star()), "many")]
        if self.operator:
            member = exp.column(_MEMBER, quoted=True)
            nulls = exp.Where(this=exp.Is(this=member.copy(), expression=exp.Null()))
            items.append(exp.alias_(exp.Filter(this=_call("COUNT", exp.Star()), expression=nulls), "nulls"))
            if self.operator != "=":
                items += [exp.alias_(_call(name, member.copy()), name.lower()) for name in ("MIN", "MAX")]
        return self._by(items, ())

    def hits(self) -> exp.Select:
        """The different values among the rows."""
        return self._by([exp.alias_(_call("COUNT", exp.Star()), "hits")], (_MEMBER,))

    def _by(self, items: list[exp.Expr], more: tuple[str, ...]) -> exp.Select:
        keys = [exp.column(name, quoted=True) for name in (*more, *self.keys)]
        made = exp.Select(expressions=[*items, *keys]).from_(exp.Table(this=exp.to_identifier(self.name, quoted=True)))
        if keys:
            made.set("group", exp.Group(expressions=[key.copy() for key in keys]))
        return made


def _call(name: str, argument: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=[argument])


def _alias(name: str, columns: list[str]) -> exp.TableAlias:
    written = [exp.to_identifier(each, quoted=True) for each in columns]
    return exp.TableAlias(this=exp.to_identifier(name, quoted=True), columns=written)
