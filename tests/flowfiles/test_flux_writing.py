"""Topologies written as Flux files: read again they are equal, and what no file can hold is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.errors import FlowError
from penstock.flowfiles.flux_writing import comparable
from penstock.flowfiles.writing import write_flow
from penstock.testing import run_local


class Split(ps.Bolt):
    outputs = {"default": "word string", "odd": "word string"}

    def process(self, tup: Any) -> Any:
        for word in tup.line.split():
            yield ps.to("odd", word) if len(word) % 2 else word


@dataclass
class Suffix(ps.Bolt):
    """A bolt with an argument, which a dataclass shows."""

    suffix: str = "!"
    outputs = "word string"

    def process(self, tup: Any) -> Any:
        yield tup.word + self.suffix


class First:
    def choose(self, values: Any) -> int:
        return 0


class Attributes(Split):
    def __init__(self) -> None:
        self.own = object()


def words(config: dict[str, Any] | None = None) -> ps.Topology:
    top = ps.Topology("words", config)
    top.spout("lines", ps.items(["to be", "or not"], "line string"))
    top.bolt("split", Split, 2).shuffle("lines")
    return top


def test_a_topology_comes_back_equal(tmp_path: Path) -> None:
    top = words({"topology.message.timeout.secs": 60, "own": [1, {"a": None}]})
    top.bolt("even", Suffix("?"), 3, config={"topology.tick.tuple.freq.secs": 60}).fields("split", "word")
    top.bolt("odd", Suffix()).custom("split", First, stream="odd").global_("even")
    top.sink("out", ps.console(), from_="odd")
    text = write_flow(top)
    (tmp_path / "words.yaml").write_text(text)
    again = ps.flow_file(tmp_path / "words.yaml")
    assert comparable(again.graph) == comparable(top.graph)
    assert again.graph.node("even").config == top.graph.node("even").config  # type: ignore[attr-defined]  # a bolt has settings
    assert (
        sorted(run_local(again)["out"]) == sorted(run_local(top)["out"]) == [("be?!",), ("not!",), ("or?!",), ("to?!",)]
    )


BAD: dict[str, tuple[Callable[[ps.Topology], Any], str]] = {
    "an object": (lambda top: top.bolt("own", Attributes()).shuffle("lines"), "component 'own' holds .*Attributes, which no file can make again"),
    "a lambda": (lambda top: top.bolt("own", Split).custom("lines", lambda values: 0), "component 'own' holds"),
    "a loop": (lambda top: top.bolt("own", Suffix).shuffle("split").shuffle("own", feedback=True), "reads 'own' by a loop"),
    "a partial key": (lambda top: top.bolt("own", Suffix).partial_key("split", "word"), "by partial_key, which Flux does not have"),
    "settings": (lambda top: top.bolt("own", Suffix, config={"own.key": object()}).shuffle("split"), "component 'own' holds .*object"),
    "a policy": (lambda top: top.bolt("own", Suffix, on_error="skip").shuffle("split"), "component 'own' has an on_error"),
    "dead letters": (lambda top: top.dead_letters("bad", ps.console()), "what becomes of bad tuples, for which Flux has no word"),
    "a program": (lambda top: top.bolt("own", ps.ShellBolt(["a"], ["word"])).shuffle("lines"), "component 'own' holds"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_what_no_file_can_hold_is_refused(what: str) -> None:
    change, message = BAD[what]
    top = words()
    change(top)
    with pytest.raises(FlowError, match=message):
        write_flow(top)


def test_only_flows_and_topologies_are_written() -> None:
    with pytest.raises(FlowError, match=r"export writes a ps.Flow or a ps.Topology, got TridentTopology"):
        write_flow(ps.TridentTopology("words"))
