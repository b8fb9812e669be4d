"""How answers are shown: as a table for people, as lines of JSON for programs."""

from __future__ import annotations

import datetime
import decimal
import json
from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from penstock.cli.output.terminal import on_screen
from penstock.graph.nodes.base import COUNT
from penstock.graph.nodes.changes import OPERATION

WIDTH = 60
"""A longer value is cut on a terminal."""


def table_of(names: Sequence[str], rows: Sequence[Sequence[Any]], title: str = "", most: int | None = None) -> Table:
    """Rows as a table of rich, the first `most` of them."""
    numbers = [_is_number(rows, at) for at in range(len(names))]
    made = Table(title=title or None, title_justify="left", title_style="dim")
    for name, number in zip(names, numbers, strict=True):
        made.add_column(Text(name), justify="right" if number else "left", overflow="ellipsis", no_wrap=True)
    for row in rows[:most]:
        made.add_row(*(_cell(value) for value in row))
    return made


def _is_number(rows: Sequence[Sequence[Any]], at: int) -> bool:
    known = [row[at] for row in rows[:100] if row[at] is not None]
    return bool(known) and all(isinstance(v, int | float | decimal.Decimal) and not isinstance(v, bool) for v in known)


def _cell(value: object) -> Text:
    if value is None:
        return Text("null", "dim")
    text = on_screen(text_of(value))
    return Text(text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…")


def text_of(value: object) -> str:
    """A value as people read it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    return (
        json.dumps(value, default=plain, ensure_ascii=False) if isinstance(value, dict | list | tuple) else str(value)
    )


def json_line(names: Sequence[str], row: Sequence[Any]) -> str:
    """A row as a JSON object."""
    return json.dumps(dict(zip(names, row, strict=True)), default=plain, ensure_ascii=False)


def change_line(row: Any) -> str:
    """A row of a live query as a JSON object; of a table from which rows may go, `op` says what happened to the row.

    >>> from penstock.graph.row import row_class
    >>> change_line(row_class(("word", "__count"))(("a", -1))), change_line(row_class(("word",))(("a",)))
    ('{"op": "delete", "word": "a"}', '{"word": "a"}')
    """
    *names, last = row.names
    if last == OPERATION:
        return json_line(("op", *names), (row[-1], *row[:-1]))
    if last == COUNT:
        op = "insert" if row[-1] > 0 else "delete"
        line = json_line(("op", *names), (op, *row[:-1]))
        return "\n".join([line] * abs(row[-1]))
    return json_line(row.names, row)


def plain(value: object) -> object:
    """A value as JSON can say it."""
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
