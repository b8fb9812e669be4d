"""ALTER TABLE and ALTER VIEW: another definition in the place of one that no statement has read or written yet."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from penstock.errors import nearest
from penstock.frontends.sql.catalog.catalog import Table, View, statements_of
from penstock.frontends.sql.plan.statements.statements import ACTIONS, Script
from penstock.frontends.sql.text import alter as _alter  # noqa: F401 - ALTER is a statement
from penstock.frontends.sql.text import statements as s
from penstock.frontends.sql.text.source import SqlText


def alter_table(script: Script, statement: s.AlterTable) -> None:
    """ALTER TABLE."""
    catalog = script.session.catalog
    if statement.if_exists and catalog.find(statement.name) is None:
        return
    table = catalog.table(script.text, statement.name, statement.at)
    if not isinstance(table, Table) or table.definition is None:
        raise script.text.error(
            statement.at,
            f"expected a table that CREATE TABLE has made, got {statement.name!r}; use ALTER VIEW for views",
        )
    _check_unused(script, table.name, statement.at)
    before = _brought_here(script.text, table, statement.at)
    made = _altered(script.text, before, statement)
    _put(
        script,
        table.name,
        replace(table, name=made.name, definition=made, text=script.text, statements=_said(script, table, statement)),
        statement.at,
    )


def alter_view(script: Script, statement: s.AlterView) -> None:
    """ALTER VIEW."""
    catalog = script.session.catalog
    if statement.if_exists and catalog.find(statement.name) is None:
        return
    view = catalog.table(script.text, statement.name, statement.at)
    if not isinstance(view, View):
        raise script.text.error(statement.at, f"expected a view, got the table {statement.name!r}; use ALTER TABLE")
    if id(view) in script.session.views:
        raise _used(script, view.name, statement.at)
    if statement.query is None:
        made = replace(
            view, name=statement.rename, definition=view.definition and replace(view.definition, name=statement.rename)
        )
    else:
        definition = view.definition and replace(
            view.definition, at=statement.at, end=statement.end, query=statement.query
        )
        made = replace(view, query=statement.query, text=script.text, definition=definition)
    _put(script, view.name, replace(made, statements=_said(script, view, statement)), statement.at)


def _said(script: Script, item: Table | View, statement: s.Statement) -> tuple[str, ...]:
    """The statements that have made a table or view, this one the last."""
    return (*statements_of(item), script.text.text[statement.at : statement.end])


def _check_unused(script: Script, name: str, at: int) -> None:
    used = [*script.session.relations, *(("table", *key) for key in script.session.writes)]
    if any(isinstance(key, tuple) and key[:2] == ("table", name.lower()) for key in used):
        raise _used(script, name, at)


def _used(script: Script, name: str, at: int) -> Exception:
    return script.text.error(
        at,
        f"{name!r} is read or written by a statement before this one, and all statements are one flow; ALTER it before that",
    )


def _put(script: Script, before: str, made: Table | View, at: int) -> None:
    """The new definition under its name; under a new one the old name is free."""
    if made.name.lower() != before.lower():
        script.check_new(made.name, at)
        del script.session.catalog.tables[before.lower()]
    script.session.catalog.define(made)


def _brought_here(text: SqlText, table: Table, at: int) -> s.CreateTable:
    """The definition as a statement of this text: what was written in another stands where ALTER stands."""
    definition = table.definition
    assert definition is not None
    if table.text is None or table.text == text:
        return definition
    watermark = definition.watermark
    for tree in (*(c.computed for c in definition.columns), watermark.expression if watermark else None):
        _forget_places(tree)
    columns = tuple(replace(c, at=at) for c in definition.columns)
    options = tuple((name, value, at) for name, value, _ in definition.options)
    return replace(
        definition, at=at, columns=columns, watermark=watermark and replace(watermark, at=at), options=options
    )


def _forget_places(tree: exp.Expr | None) -> None:
    for node in tree.walk() if tree is not None else ():
        node.meta.pop("start", None)


def _altered(text: SqlText, before: s.CreateTable, statement: s.AlterTable) -> s.CreateTable:
    """A definition with one change."""
    change = statement.change
    if change.verb == "RENAME":
        return replace(before, name=change.rename)
    if change.verb == "RENAME COLUMN":
        return _renamed(text, before, change)
    if change.verb == "SET":
        named = {name.lower() for name, _, _ in change.options}
        return replace(before, options=(*(o for o in before.options if o[0].lower() not in named), *change.options))
    if change.verb == "RESET":
        return _reset(text, before, change)
    if change.verb == "DROP":
        return _dropped(text, before, change, statement.at)
    return _with_parts(text, before, change, statement.at)


def _reset(text: SqlText, before: s.CreateTable, change: s.Alteration) -> s.CreateTable:
    known = [name for name, _, _ in before.options]
    for name, at in change.names:
        if name == "connector" or name not in known:
            reason = "a table needs its connector" if name == "connector" else nearest(name, known)
            raise text.error(at, f"no option {name!r} of {before.name!r} can be reset; {reason}")
    gone = {name for name, _ in change.names}
    return replace(before, options=tuple(o for o in before.options if o[0] not in gone))


def _renamed(text: SqlText, before: s.CreateTable, change: s.Alteration) -> s.CreateTable:
    ((old, at),) = change.names
    found = _column(text, before, old, at)
    _check_free(text, before, found.name, at)
    if any(c.name.lower() == change.rename.lower() and c is not found for c in before.columns):
        raise text.error(at, f"table {before.name!r} has a column {change.rename!r} already")
    columns = tuple(replace(c, name=change.rename) if c is found else c for c in before.columns)
    return replace(before, columns=columns)


def _dropped(text: SqlText, before: s.CreateTable, change: s.Alteration, at: int) -> s.CreateTable:
    if change.parts:
        word = change.parts[0]
        if not (before.key if word == "PRIMARY KEY" else before.watermark):
            raise text.error(at, f"table {before.name!r} has no {word}")
        return replace(before, key=()) if word == "PRIMARY KEY" else replace(before, watermark=None)
    gone = [_column(text, before, name, place) for name, place in change.names]
    columns = tuple(c for c in before.columns if not any(c is each for each in gone))
    after = replace(before, columns=columns)
    for each, (_, place) in zip(gone, change.names, strict=True):
        _check_free(text, after, each.name, place)
    return after


def _column(text: SqlText, table: s.CreateTable, name: str, at: int) -> s.ColumnDefinition:
    found = next((c for c in table.columns if c.name.lower() == name.lower()), None)
    if found is None:
        known = [c.name for c in table.columns]
        raise text.error(
            at, f"table {table.name!r} has no column {name!r}; {nearest(name, known) if known else 'it has none'}"
        )
    return found


def _check_free(text: SqlText, table: s.CreateTable, name: str, at: int) -> None:
    """Refuses to take away a name that another part of the table has in it."""
    wanted = name.lower()
    users = [f"the column {c.name!r}" for c in table.columns if c.computed is not None and _names(c.computed, wanted)]
    users += ["WATERMARK"] if table.watermark is not None and table.watermark.column.lower() == wanted else []
    users += ["PRIMARY KEY"] if wanted in map(str.lower, table.key) else []
    users += ["PARTITIONED BY"] if wanted in map(str.lower, table.partitioned) else []
    if users:
        raise text.error(
            at, f"column {name!r} of {table.name!r} is used by {', '.join(users)}; drop or modify that first"
        )


def _names(tree: exp.Expr, name: str) -> bool:
    return any(part.name.lower() == name for column in tree.find_all(exp.Column) for part in column.parts)


def _with_parts(text: SqlText, before: s.CreateTable, change: s.Alteration, at: int) -> s.CreateTable:
    """ADD and MODIFY: what is added must be new, and what is modified must be there."""
    adds, made = change.verb == "ADD", before
    for column, place in change.columns:
        made = _with_column(text, made, column, place, adds)
    for part, given, there in (
        ("WATERMARK", change.watermark, before.watermark),
        ("PRIMARY KEY", change.key, before.key),
    ):
        if given and bool(there) is adds:
            raise text.error(
                at, f"table {before.name!r} has {'a' if adds else 'no'} {part}; {'MODIFY' if adds else 'ADD'} it"
            )
    return replace(made, watermark=change.watermark or before.watermark, key=change.key or before.key)


def _with_column(
    text: SqlText, table: s.CreateTable, column: s.ColumnDefinition, place: tuple[str, int] | None, adds: bool
) -> s.CreateTable:
    names = [c.name.lower() for c in table.columns]
    known = column.name.lower() in names
    if known is adds:
        raise text.error(
            column.at,
            f"table {table.name!r} has {'a' if adds else 'no'} column {column.name!r}; {'MODIFY' if adds else 'ADD'} it",
        )
    rest = [c for c in table.columns if c.name.lower() != column.name.lower()]
    at = names.index(column.name.lower()) if known else len(rest)
    if place is not None:
        at = 0 if not place[0] else rest.index(_column(text, replace(table, columns=tuple(rest)), *place)) + 1
    return replace(table, columns=(*rest[:at], column, *rest[at:]))


ACTIONS[s.AlterTable] = alter_table
ACTIONS[s.AlterView] = alter_view
