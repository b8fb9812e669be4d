"""A record with the name of the output it goes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TaggedRecord:
    """What `to` makes: a record and its output."""

    output: str
    record: Any


def to(output: str, record: object) -> TaggedRecord:
    """Sends a record of a `flat_map`, `process` or `update_state` to a side output.

    Args:
        output: the name of the output, one of `side=` of the step.
        record: the record, in any form that fits its schema.

    Returns:
        The record with the name of its output, for the function to return or yield.

    >>> import penstock as ps
    >>> from penstock.testing import run_local
    >>> def parse(row):
    ...     yield int(row.text) if row.text.isdigit() else ps.to("odd", row.text)
    >>> texts = ps.Flow("demo").source("texts", ps.items(["7", "x"], "text string"))
    >>> numbers = texts.flat_map("parse", parse, "n int", side={"odd": "text string"})
    >>> numbers.sink("numbers", ps.console())
    >>> numbers.side("odd").sink("odd", ps.console())
    >>> run_local(texts.flow)
    {'numbers': [Row(n=7)], 'odd': [Row(text='x')]}
    """
    return TaggedRecord(output, record)
