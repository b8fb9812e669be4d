"""Rows for people, in columns that are never cut, and for programs, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import typer

from penstock.cli.output.terminal import on_screen

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")


def show(rows: Sequence[Mapping[str, Any]], empty: str) -> None:
    """Print rows under the names of their fields; `empty` when there is none."""
    if not rows:
        typer.echo(empty, err=True)
        return
    names = list(rows[0])
    cells = [[text(row[name]) for name in names] for row in rows]
    right = [{type(row[name]) for row in rows} - {type(None)} == {int} for name in names]
    widths = [max(len(name), *(len(line[at]) for line in cells)) for at, name in enumerate(names)]
    typer.secho(_line([name.upper().replace("_", " ") for name in names], widths, right), bold=True)
    for line in cells:
        typer.echo(_line(line, widths, right))


def _line(cells: list[str], widths: list[int], right: list[bool]) -> str:
    padded = (cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(cells, widths, right, strict=True))
    return "  ".join(padded).rstrip()


def show_json(found: object) -> None:
    """Print JSON."""
    typer.echo(json.dumps(found, indent=2, ensure_ascii=False))


def text(value: object) -> str:
    """How a cell reads; a dash where there is nothing."""
    return "-" if value is None or value == "" else on_screen(str(value))


def size(count: int) -> str:
    """Bytes as people say them.

    >>> size(512), size(64 << 20), size(1536)
    ('512 B', '64 MiB', '1.5 KiB')
    """
    amount, unit = float(count), 0
    while amount >= 1024 and unit < len(_SIZES) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.4g} {_SIZES[unit]}"


def span(ms: int) -> str:
    """A span of milliseconds in its largest whole unit.

    >>> span(604_800_000), span(5_400_000), span(1500)
    ('7d', '90m', '1500ms')
    """
    for unit, length in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if ms and ms % length == 0:
            return f"{ms // length}{unit}"
    return f"{ms}ms"


def count(number: int, noun: str) -> str:
    """A number and what it counts.

    >>> count(1, "record"), count(2000, "record")
    ('1 record', '2,000 records')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
