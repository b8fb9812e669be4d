"""FOR SYSTEM_TIME AS OF: a table as it was at a row's time, or as it is now."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from penstock.frontends.sql.catalog.catalog import Table
from penstock.frontends.sql.catalog.options import looked_up_of, source_of
from penstock.frontends.sql.expr.scope import Relation, VisibleColumn
from penstock.frontends.sql.plan.context import Planning, fresh
from penstock.frontends.sql.plan.joins.joins import apart, keys_of, kind_of, pairs_of
from penstock.frontends.sql.plan.joins.special_joins import SPECIAL_JOINS
from penstock.frontends.sql.plan.queries.conditions import conjuncts
from penstock.frontends.sql.plan.relations.from_clause import aliased, plan_relation
from penstock.frontends.sql.plan.relations.tables import physical
from penstock.frontends.sql.plan.windows.windows import settled, time_of
from penstock.graph.compose import add_join
from penstock.graph.expr import Call, Cast, Column, Expr, columns_of
from penstock.graph.nodes import AsOfJoin, Endpoint, JoinStatic, LookupJoin, Port, Select, Top, Where
from penstock.graph.nodes.join import CHANGED, Refresh
from penstock.graph.order import Term
from penstock.graph.relational.versions import add_versioned_join


def _is_temporal(tree: exp.Join) -> bool:
    return isinstance(tree.this, exp.Table) and tree.this.args.get("version") is not None


def _temporal(planning: Planning, left: Relation, tree: exp.Join) -> Relation:
    how = kind_of(planning, tree)
    if how not in ("inner", "left"):
        raise planning.text.error(
            tree, f"expected JOIN or LEFT JOIN with FOR SYSTEM_TIME AS OF, got {how.upper()} JOIN"
        )
    left = settled(planning, left, tree)
    time = tree.this.args["version"].expression
    if _is_now(planning, left, time):
        found = _static(planning, tree.this)
        if found is not None:
            return _looked_up(planning, left, tree, how, found)
        return _matched(planning, left, tree, how, versions=False)
    _check_time(planning, left, time)
    return _matched(planning, left, tree, how, versions=True)


def _is_now(planning: Planning, left: Relation, time: exp.Expr) -> bool:
    if isinstance(time, exp.Anonymous) and str(time.this).upper() == "PROCTIME":
        return True
    if not isinstance(time, exp.Column):
        raise planning.text.error(time, "expected a column of the left side after FOR SYSTEM_TIME AS OF")
    found = planning.scope(left).find(time.table, time.name, time)
    if found is None:
        raise planning.scope(left).unknown(time.table, time.name, time)
    return found.field in left.clocks


def _check_time(planning: Planning, left: Relation, time: exp.Expr) -> None:
    found = planning.scope(left).find(time.table if isinstance(time, exp.Column) else "", time.name, time)
    assert found is not None
    time_of(planning, left, found, time)


@dataclass(frozen=True)
class _Static:
    """A table to look up in, and when it is read again."""

    endpoint: Endpoint
    refresh: Refresh


def _static(planning: Planning, tree: exp.Expr) -> _Static | None:
    """A table that a connector holds and that has no time of its own."""
    found = planning.catalog.find(tree.name)
    if not isinstance(found, Table):
        return None
    if found.definition is None:
        return None if found.endpoint is None else _watched(found.endpoint)
    if found.definition.watermark is not None or any(c.computed is not None for c in found.definition.columns):
        return None
    text, schema = found.text or planning.text, physical(found.definition)
    looked = None if found.endpoint else looked_up_of(text, found.definition, schema)
    if looked is not None:
        return _Static(looked.endpoint, looked.refresh)
    made = found.endpoint or source_of(text, found.definition, schema)
    return _watched(replace(made, schema=schema, bounded=True)) if made.bounded or found.endpoint else None


def _watched(endpoint: Endpoint) -> _Static:
    return _Static(endpoint, CHANGED if endpoint.capabilities.can_watch else None)


def _without_version(tree: exp.Table) -> exp.Table:
    made = tree.copy()
    made.set("version", None)
    return made


def _looked_up(planning: Planning, left: Relation, tree: exp.Join, how: str, table: _Static) -> Relation:
    """A look-up in a table of a connector: native, without state."""
    endpoint = table.endpoint
    assert endpoint.schema is not None
    names = endpoint.schema.names
    static = Relation(left.port, tuple(VisibleColumn("", n, n) for n in names))
    right = aliased(planning, tree.this, static, tree.this.name)
    left = _renamed(planning, left, names, tree)
    keys, rest = _lookup_keys(planning, left, right, endpoint, tree)
    have = planning.schema(left.port).names
    columns = (*((n, Column(n)) for n in have), *keys.items())
    port = planning.add(Select(planning.step("lookup-keys"), (left.port,), columns), tree)
    node = JoinStatic(planning.step("lookup"), (port,), endpoint, tuple(keys), how, table.refresh)
    found = planning.add(node, tree)
    both = replace(left, port=found, columns=left.columns + right.columns)
    if rest and how == "left":
        raise planning.text.error(rest[0], "expected equalities with columns of the table in a LEFT look-up")
    for each in rest:
        made, _ = planning.translator(both).checked(each, planning.schema(found))
        both = both.at(planning.add(Where(planning.step("where"), (both.port,), made), each))
    return both


def _renamed(planning: Planning, left: Relation, names: tuple[str, ...], place: exp.Expr) -> Relation:
    """The left side under names of fields that the table does not have."""
    have = planning.schema(left.port).names
    taken = {n.lower() for n in names}
    moved = {n: fresh(n, [*names, *have]) for n in have if n.lower() in taken}
    if not moved:
        return left
    columns = tuple((moved.get(n, n), Column(n)) for n in have)
    return left.renamed(planning.add(Select(planning.step("left"), (left.port,), columns), place), moved)


def _lookup_keys(
    planning: Planning, left: Relation, right: Relation, endpoint: Endpoint, tree: exp.Join
) -> tuple[dict[str, Expr], list[exp.Expr]]:
    """The columns of the table that are asked for, with the values of the left; and the other conditions."""
    assert endpoint.schema is not None
    keys: dict[str, Expr] = {}
    rest: list[exp.Expr] = []
    for each in conjuncts(tree.args.get("on")):
        found = _key(planning, left, right, each)
        if found is None or found[0] in keys:
            rest.append(each)
            continue
        name, side = found
        made, kind = planning.translator(left).checked(side, planning.schema(left.port))
        wanted = endpoint.schema.field(name).type
        keys[name] = made if str(kind) == str(wanted) else Cast(made, wanted)
    if not keys:
        raise planning.text.error(tree, "expected ON table.column = value in a look-up")
    return keys, rest


def _key(planning: Planning, left: Relation, right: Relation, tree: exp.Expr) -> tuple[str, exp.Expr] | None:
    if not isinstance(tree, exp.EQ):
        return None
    for mine, theirs in ((tree.this, tree.expression), (tree.expression, tree.this)):
        if isinstance(theirs, exp.Column):
            found = planning.scope(right).find(theirs.table, theirs.name, theirs)
            other = planning.scope(left).matches(theirs.table, theirs.name)
            if found is not None and not other:
                return found.field, mine
    return None


def _matched(planning: Planning, left: Relation, tree: exp.Join, how: str, *, versions: bool) -> Relation:
    """A join with a stream: the version that was valid at the row's time, or what is there now."""
    before = {node.name for node in planning.builder.nodes}
    right = settled(planning, plan_relation(planning, _without_version(tree.this)), tree)
    right = apart(planning, left, _versioned(planning, right, tree, before) if versions else right, tree)
    both = replace(left, columns=left.columns + right.columns)
    pairs, rest = pairs_of(planning, left, right, both, conjuncts(tree.args.get("on")))
    if not pairs:
        raise planning.text.error(tree, "expected ON with an equality of a column of each side")
    ours, theirs = keys_of(planning, left, right, pairs)
    condition: Expr | None = None
    for _, made in rest:
        condition = made if condition is None else Call("and", (condition, made))
    sides, names = (ours.port, theirs.port), (ours.names, theirs.names)

    def add() -> Port:
        if versions:
            return add_versioned_join(
                planning.builder, AsOfJoin(ours.name, sides, *names, how, condition=condition, direction="backward")
            )
        return add_join(planning.builder, LookupJoin(ours.name, sides, *names, how, condition=condition))

    port = planning.adding(add, tree)
    fields = set(planning.schema(port).names)
    return replace(
        both, port=port, columns=tuple(c for c in both.columns if c.field in fields or c.field in left.clocks)
    )


def _versioned(planning: Planning, right: Relation, tree: exp.Join, before: set[str]) -> Relation:
    """All versions of a view that shows the newest of each key, where it is joined by that key.

    The steps that find the newest go, but for those that were there `before`.
    """
    found = _newest(planning, right.port)
    if found is None:
        return right
    wanted = {c.field for each in conjuncts(tree.args.get("on")) for c in _equal_columns(planning, right, each)}
    if set(found.keys) != wanted:
        return right
    port = found.port
    planning.session.forget(set(found.steps) - before)
    for columns in found.selected:
        port = planning.add(Select(planning.step("versions"), (port,), columns), tree)
    return right.at(port)


def _equal_columns(planning: Planning, right: Relation, tree: exp.Expr) -> list[VisibleColumn]:
    """The columns of the right side that an equality asks for."""
    sides = (tree.this, tree.expression) if isinstance(tree, exp.EQ) else ()
    columns = (planning.scope(right).matches(c.table, c.name) for c in sides if isinstance(c, exp.Column))
    return [found[0] for found in columns if found]


@dataclass(frozen=True)
class _Newest:
    """The newest row of each key: the stream of all of them, the fields of the key, the steps that make it, and what they select."""

    port: Port
    keys: tuple[str, ...]
    steps: tuple[str, ...]
    selected: tuple[tuple[tuple[str, Expr], ...], ...] = ()


def _newest(planning: Planning, port: Port) -> _Newest | None:
    """What a stream is the newest of by event time; None where it is anything else."""
    node = next(each for each in planning.builder.nodes if each.name == port.step)
    if isinstance(node, Top):
        given = planning.output(node.inputs[0])
        is_newest = given.event_time is not None and node.by == (Term(given.event_time.column, True),)
        is_newest = is_newest and node.n == 1 and given.changes is None
        return _Newest(node.inputs[0], node.keys, (node.name,)) if is_newest else None
    found = _newest(planning, node.inputs[0]) if isinstance(node, Select) else None
    if found is None or not isinstance(node, Select):
        return None
    names = {e.name: n for n, e in node.columns if isinstance(e, Column)}
    have = planning.schema(found.port).names if not found.selected else [n for n, _ in found.selected[-1]]
    if not set(found.keys) <= set(names) or any(set(columns_of(e)) - set(have) for _, e in node.columns):
        return None
    keys, steps = tuple(names[k] for k in found.keys), (*found.steps, node.name)
    return _Newest(found.port, keys, steps, (*found.selected, node.columns))


SPECIAL_JOINS.insert(0, (_is_temporal, _temporal))
