"""The accounting of a batch."""

from __future__ import annotations

import penstock as ps
from penstock.compiler.balance import balance


def flow() -> ps.Flow:
    made = ps.Flow("accounting")
    texts = made.source("texts", ps.items([], "text string"))
    parsed = texts.map("parse", lambda r: r, "text string").where("long", "length(text) > 3")
    parsed.sink("out", ps.console())
    return made


def test_what_was_read_is_written_filtered_or_put_aside() -> None:
    steps = {"parse": (10, 8), "long": (8, 5), "out": (5, 5)}
    made = balance(flow().graph, {"texts": 10}, steps, {"w": 1}, {"t": 3}, {"parse": 2})
    assert (made.read, made.written, made.filtered, made.dead, made.late, made.bad) == (10, 5, 3, 2, 1, 3)
    assert made.discrepancies == ()
    assert made.as_dict() == {"read": 10, "written": 5, "filtered": 3, "late": 1, "bad": 3, "dead": 2}


def test_a_step_that_loses_a_record_is_named() -> None:
    made = balance(flow().graph, {"texts": 10}, {"parse": (10, 7)}, {}, {}, {"parse": 2})
    assert made.discrepancies == ("step 'parse' took 10 records and emitted 7, with 2 put aside",)
