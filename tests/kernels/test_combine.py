"""The half of an aggregate before the shuffle: records that are nothing but their key are added in one go."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import pytest

import penstock as ps
from penstock.compiler.compile import compile_graph
from penstock.graph.nodes import Combine
from penstock.graph.schema import schema_of
from penstock.kernels.base import Context, RecordFailed
from penstock.kernels.keyed import combine
from penstock.kernels.keyed.combine import CombineOwnKernel, combine_kernel, only_key
from penstock.kernels.records.chunk import Chunk
from penstock.state.memory import MemoryState


class Listed(ps.Aggregator):
    """The records themselves, so that each call can be seen."""

    schema = "array<string>"

    def init(self) -> list[str]:
        """None yet."""
        return []

    def add(self, so_far: list[str], row: Any) -> list[str]:
        """One more; the third of a bad word is refused."""
        if row.word == "bad" and len(so_far) == 2:
            raise ValueError("enough")
        return [*so_far, row.word]

    def merge(self, one: list[str], other: list[str]) -> list[str]:
        """Both."""
        return one + other


class Gathered(Listed):
    """The same, several at a time."""

    def add_all(self, so_far: list[str], rows: Sequence[Any]) -> list[str]:
        """All of them; two bad words at once are refused."""
        if [row.word for row in rows].count("bad") > 1:
            raise ValueError("enough")
        return [*so_far, *(row.word for row in rows)]


def kernel_over(schema: str, own: type[ps.Aggregator] = Listed) -> CombineOwnKernel:
    flow = ps.Flow("combined")
    flow.source("words", ps.items([], schema)).key_by("word").aggregate("all", made=own).sink("out", ps.console())
    plan = compile_graph(flow.graph, live=True)
    [node] = [n for n in plan.graph.nodes if isinstance(n, Combine)]
    made = combine_kernel(node, plan.graph.output(node.inputs[0]).schema)
    assert isinstance(made, CombineOwnKernel)
    made.open(Context(scratch=MemoryState))
    return made


def parts(kernel: CombineOwnKernel) -> dict[str, list[str]]:
    [(_, chunk)] = kernel.advance(kernel.times)
    return {key: pickle.loads(part)[0] for key, part in chunk.values()}


@pytest.mark.parametrize("own", [Listed, Gathered])
@pytest.mark.parametrize("schema", ["word string", "word string, n int"])
def test_every_record_is_added_whatever_else_it_holds(schema: str, own: type[ps.Aggregator]) -> None:
    kernel = kernel_over(schema, own)
    wide = "," in schema
    for words in (["a", "b", "a"], ["b", "b"]):
        kernel.take(Chunk.of(schema_of(schema), [(w, 1) if wide else w for w in words]))
    assert parts(kernel) == {"a": ["a", "a"], "b": ["b", "b", "b"]}
    assert parts(kernel) == {}


BAD = ["bad", "a", "bad", "b", "bad", "bad"]


def test_the_record_that_fails_is_named() -> None:
    kernel = kernel_over("word string")
    kernel.take(Chunk.of(schema_of("word string"), BAD))
    with pytest.raises(RecordFailed) as failed:
        list(kernel.advance(kernel.times))
    assert failed.value.record == ("bad",)
    assert failed.value.at is None


def _whole_batch(kernel: CombineOwnKernel, chunk: Chunk) -> None:
    kernel.take(chunk)
    list(kernel.advance(kernel.times))


@pytest.mark.parametrize("schema", ["word string", "word string, n int"])
def test_several_records_that_fail_together_are_named(schema: str) -> None:
    kernel = kernel_over(schema, Gathered)
    rows = [(word, 1) if "," in schema else word for word in BAD]
    with pytest.raises(RecordFailed) as failed:
        _whole_batch(kernel, Chunk.of(schema_of(schema), rows))
    assert isinstance(failed.value.record, tuple)
    assert (failed.value.record[0], failed.value.at) == ("bad", None)


def test_many_alike_records_are_given_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(combine, "GATHERED", 2)
    monkeypatch.setattr(combine, "TOGETHER", 3)
    kernel = kernel_over("word string", Gathered)
    for _ in range(3):
        kernel.take(Chunk.of(schema_of("word string"), ["a", "a", "b"]))
    assert parts(kernel) == {"a": ["a"] * 6, "b": ["b"] * 3}


@pytest.mark.parametrize("own", [Listed, Gathered])
def test_a_step_that_goes_on_knows_where_the_record_stood(own: type[ps.Aggregator]) -> None:
    kernel = kernel_over("word string", own)
    kernel.guarded = True
    with pytest.raises(RecordFailed) as failed:
        kernel.take(Chunk.of(schema_of("word string"), BAD))
    assert failed.value.at == 4


def test_equal_numbers_that_can_be_told_apart_are_added_one_by_one() -> None:
    assert only_key(schema_of("word string"))
    assert only_key(schema_of("n bigint"))
    assert not only_key(schema_of("x double"))
    assert not only_key(schema_of("x decimal(4,2)"))
    assert not only_key(schema_of("word string, n int"))
