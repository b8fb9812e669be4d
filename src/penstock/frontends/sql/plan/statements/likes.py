"""CREATE TABLE ... LIKE: what the other table has, as far as INCLUDING, EXCLUDING and OVERWRITING say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from penstock.frontends.sql.text import statements as s
from penstock.frontends.sql.text.source import SqlText

V = TypeVar("V")
ALL = "ALL"
_PARTS = ("CONSTRAINTS", "GENERATED", "METADATA", "OPTIONS", "PARTITIONS", "WATERMARKS")
_OVERWRITING = ("GENERATED", "METADATA", "OPTIONS", "WATERMARKS")
INCLUDING, EXCLUDING, OVERWRITING = "INCLUDING", "EXCLUDING", "OVERWRITING"


def liked(text: SqlText, statement: s.CreateTable, base: s.CreateTable) -> s.CreateTable:
    """A definition with what another one has. Unless the statement says otherwise all is included, and own options replace those of the other.

    Raises:
        SqlError: both say what only one may, or a part cannot be taken in this way.
    """
    hows = _hows(text, statement)
    columns = _columns(text, statement, base, hows)
    return replace(
        statement,
        columns=columns,
        watermark=_one(text, statement, hows["WATERMARKS"], "WATERMARK", statement.watermark, base.watermark),
        key=_one(text, statement, hows["CONSTRAINTS"], "PRIMARY KEY", statement.key, base.key),
        partitioned=_one(
            text, statement, hows["PARTITIONS"], "PARTITIONED BY", statement.partitioned, base.partitioned
        ),
        options=_options(text, statement, base, hows["OPTIONS"]),
        like="",
        like_parts=(),
    )


def _hows(text: SqlText, statement: s.CreateTable) -> dict[str, str]:
    """How each part is taken; what is said of one part goes before what is said of all."""
    every = next((how for how, part, _ in statement.like_parts if part == ALL), INCLUDING)
    made = dict.fromkeys(_PARTS, every)
    made["OPTIONS"] = OVERWRITING if every == INCLUDING else every
    for how, part, at in statement.like_parts:
        if how == OVERWRITING and part not in _OVERWRITING:
            raise text.error(
                at, f"expected INCLUDING or EXCLUDING {part}: OVERWRITING goes with {', '.join(_OVERWRITING)}"
            )
        if part != ALL:
            made[part] = how
    return made


def _columns(
    text: SqlText, statement: s.CreateTable, base: s.CreateTable, hows: dict[str, str]
) -> tuple[s.ColumnDefinition, ...]:
    own = {c.name.lower(): c for c in statement.columns}
    kept = []
    for column in base.columns:
        how = hows["GENERATED"] if column.computed is not None else hows["METADATA"] if column.metadata else INCLUDING
        again = own.get(column.name.lower())
        if how == EXCLUDING or (how == OVERWRITING and again is not None):
            continue
        if again is not None:
            raise text.error(again.at, f"expected a new column, got {again.name!r}, which the other table has")
        kept.append(column)
    return (*kept, *statement.columns)


def _one(text: SqlText, statement: s.CreateTable, how: str, what: str, own: V, other: V) -> V:
    if how == EXCLUDING:
        return own
    if own and other and how != OVERWRITING:
        raise text.error(statement.at, f"expected one {what}, and the other table has one; say EXCLUDING in LIKE")
    return own or other


def _options(text: SqlText, statement: s.CreateTable, base: s.CreateTable, how: str) -> s.Options:
    if how == EXCLUDING:
        return statement.options
    own = {name.lower(): at for name, _, at in statement.options}
    both = [name for name, _, _ in base.options if name.lower() in own]
    if both and how == INCLUDING and _said(statement.like_parts, "OPTIONS"):
        raise text.error(
            own[both[0].lower()], f"option {both[0]!r} is that of the other table too; say OVERWRITING OPTIONS"
        )
    return tuple(o for o in base.options if o[0].lower() not in own) + statement.options


def _said(parts: Iterable[tuple[str, str, int]], part: str) -> bool:
    return any(each == part for _, each, _ in parts)
