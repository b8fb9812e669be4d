"""Rows in and out of steps that do not count themselves."""

from __future__ import annotations

import penstock as ps
from penstock.compiler.compile import compile_graph
from penstock.compiler.counts import complete


def test_what_a_step_gives_is_what_its_reader_takes() -> None:
    flow = ps.Flow("chain")
    lines = flow.source("lines", ps.items([], "n bigint"))
    lines.select("pick", "n").where("some", "n > 1").with_columns("more", m="n + 1").map("up", lambda r: r).sink(
        "out", ps.console()
    )
    graph = compile_graph(flow.graph).graph
    counts = complete(graph, {"up": 7, "out": 7}, {"up": 7, "lines": 10})
    assert counts == {"pick": (10, 10), "some": (10, 7), "more": (7, 7), "up": (7, 7), "out": (7, 7)}


def test_the_halves_of_an_aggregate_count_as_one() -> None:
    flow = ps.Flow("words")
    lines = flow.source("lines", ps.items([], "value string"))
    lines.explode("split", "word", "split(value, ' ')").key_by("word").count("n").sink("out", ps.console())
    graph = compile_graph(flow.graph).graph
    counts = complete(graph, {"n@parts": 60, "n": 8, "out": 5}, {"n": 5, "lines": 6})
    assert counts == {"split": (6, 60), "n": (60, 5), "out": (5, 5)}


def test_branches_are_told_apart_by_their_readers() -> None:
    flow = ps.Flow("parts")
    parts = flow.source("n", ps.items([], "n bigint")).branch("size", big="n > 5")
    parts.big.sink("big", ps.console())
    parts.otherwise.where("odd", "n % 2 = 1").sink("rest", ps.console())
    counts = complete(compile_graph(flow.graph).graph, {"big": 4, "rest": 1}, {"n": 10})
    assert counts == {"size": (10, 10), "big": (4, 4), "rest": (1, 1)}
