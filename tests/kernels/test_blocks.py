"""Blocks of tuples: every tuple reaches the tasks that its grouping chooses, in its order, and the same as where a router deals tuples out."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from penstock.graph.logic.topology.collector import RootRuns
from penstock.graph.logic.topology.tuples import pack_roots, tuple_class
from penstock.graph.nodes import Grouping
from penstock.graph.nodes.topology import ROOTS, TASK, with_hidden
from penstock.graph.schema import Schema, schema_of
from penstock.kernels.records.arrow import arrow_schema, to_batch
from penstock.kernels.topology import blocks
from penstock.kernels.topology.blocks import BlockWriter, TupleRoute, kept_fields, read_block
from penstock.kernels.topology.routing import router_of
from penstock.kernels.topology.task_chunks import TaskChunk
from penstock.kernels.topology.task_tuples import RootsColumn, Tuples, roots_column

WORDS = schema_of("word string, n bigint, parts array<int>")


def batch_of(rows: list[tuple[Any, ...]], schema: Schema) -> pa.RecordBatch:
    return to_batch([list(column) for column in zip(*rows, strict=True)], schema)


def sent(route: TupleRoute, batches: list[pa.RecordBatch], emitter: int = 3) -> dict[int, list[tuple[Any, ...]]]:
    """The tuples that each task gets, by what the blocks say."""
    writer = BlockWriter((route,), emitter)
    made = [row for batch in batches for block in writer.add(batch) for row in block.to_pylist()]
    made += [row for block in writer.flush() for row in block.to_pylist()]
    found: dict[int, list[tuple[Any, ...]]] = {}
    names = kept_fields(route.schema, route.grouping)
    kept = Schema(tuple(f for f in route.schema.fields if f.name in names), internal=True)
    for row in sorted(made, key=lambda r: (r["__from"], r["__at"])):
        assert (row["__reader"], row["__from"]) == (0, emitter)
        for part in read_block(row["__data"], kept, emitter, most=7):
            found.setdefault(row["__to"], []).extend(part.values())
            assert [tuple(r.values()) for r in part.batch().to_pylist()] == list(part.values())
    return found


def rows(many: int) -> list[tuple[Any, ...]]:
    return [(None if at % 11 == 5 else f"word {at % 7}", at, [at % 3]) for at in range(many)]


@pytest.mark.parametrize(
    "grouping",
    [
        Grouping("shuffle"),
        Grouping("fields", ("word",)),
        Grouping("fields", ("word", "n")),
        Grouping("fields", ("parts",)),
        Grouping("all"),
        Grouping("global"),
        Grouping("none"),
    ],
    ids=str,
)
@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize("size", [blocks.BYTES, 200])
def test_every_tuple_goes_where_a_router_sends_it(
    grouping: Grouping, tasks: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the size of the blocks, which is what the limit of 200 bytes tests."""
    monkeypatch.setattr(blocks, "BYTES", size)
    given, router = rows(100), router_of(grouping, tasks, WORDS)
    expected: dict[int, list[tuple[Any, ...]]] = {}
    for row in given:
        for task in router.targets(row, 3):
            expected.setdefault(task, []).append(row)
    cut = [batch_of(given[at : at + 9], WORDS) for at in range(0, 100, 9)]
    assert sent(TupleRoute(grouping, tasks, WORDS), cut) == expected


def test_a_column_of_few_words_is_hashed_as_one_of_many() -> None:
    """Words without nulls that repeat are hashed once each, and move by number."""
    schema = schema_of("word string")
    router, given = router_of(Grouping("fields", ("word",)), 4, schema), [(f"word {at % 20}",) for at in range(2_000)]
    found = sent(TupleRoute(Grouping("fields", ("word",)), 4, schema), [batch_of(given, schema)])
    assert {task: {router.targets(row, 0)[0] for row in mine} for task, mine in found.items()} == {
        t: {t} for t in found
    }
    assert sorted(row for mine in found.values() for row in mine) == sorted(given)


def words_in_a_block(words: list[str], emitter: int = 0) -> Tuples:
    """Tuples of one word as a bolt gets them; each has a root of its own."""
    schema = with_hidden(schema_of("word string"), ROOTS)
    roots = [pack_roots([at + 1]) for at in range(len(words))]
    writer = BlockWriter((TupleRoute(Grouping("global"), 1, schema),), emitter)
    list(writer.add(batch_of(list(zip(words, roots, strict=True)), schema)))
    (row,) = [row for block in writer.flush() for row in block.to_pylist()]
    (chunk,) = read_block(row["__data"], schema, emitter)
    cls = tuple_class(("word",), "split", "default", True, 3)
    return Tuples(cls, chunk, ("word",), [*chunk.column(ROOTS.name)])


def test_a_bolt_that_keeps_no_tuple_gets_the_same_object_for_the_same_text() -> None:
    """Which shows nowhere; the one at hand knows its place and its roots, and one that may be kept is an object of its own."""
    words = [f"word {at % 3}" for at in range(40)]
    tuples, seen = words_in_a_block(words), []
    for at, tup in enumerate(tuples.bare()):
        assert (tuples.at, tuples.whole(tup).roots) == (at, {at + 1})
        assert (tup.word, tup.task, tup.component, tup.roots) == (words[at], 3, "split", frozenset())
        seen.append(tup)
    assert len({id(tup) for tup in seen}) == 3
    assert tuples.whole(seen[0]) is not seen[0]
    for given in (words_in_a_block(words), words_in_a_block(words).unrooted()):
        assert len({id(tup) for tup in [*given]}) == 40
    apart = words_in_a_block([f"word {at}" for at in range(40)])
    assert len({id(tup) for tup in [*apart.bare()]}) == 40


def test_the_task_that_a_tuple_names_gets_it_with_its_roots() -> None:
    schema = with_hidden(schema_of("n bigint"), TASK, ROOTS)
    given = [(at, at % 3, None if at == 2 else b"root %04d" % at) for at in range(6)]
    direct = sent(TupleRoute(Grouping("direct"), 3, schema), [batch_of(given, schema)])
    assert direct[1] == [(1, 1, b"root 0001"), (4, 1, b"root 0004")]
    chosen = sent(TupleRoute(Grouping("custom"), 3, schema), [batch_of(given, schema)])
    assert chosen[2] == [(2, None), (5, b"root 0005")]


def test_nothing_gives_no_block() -> None:
    writer = BlockWriter((TupleRoute(Grouping("shuffle"), 2, WORDS),), 0)
    assert list(writer.flush()) == []
    assert list(writer.add(pa.RecordBatch.from_pylist([], arrow_schema(WORDS)))) == []
    assert list(writer.flush()) == []


def test_each_reader_gets_its_own_blocks() -> None:
    schema = schema_of("n bigint")
    writer = BlockWriter((TupleRoute(Grouping("all"), 2, schema), TupleRoute(Grouping("global"), 5, schema)), 1)
    list(writer.add(batch_of([(1,), (2,)], schema)))
    made = [(r["__reader"], r["__to"]) for block in writer.flush() for r in block.to_pylist()]
    assert made == [(0, 0), (0, 1), (1, 0)]


ROOTED = with_hidden(schema_of("word string"), ROOTS)


def rooted(many: int, each: int, *, by_number: bool) -> pa.RecordBatch:
    """Tuples of which so many stem from each message, but for every fourth, which is none."""
    roots = [None if at % 4 == 3 else pack_roots([at]) for at in range(many)]
    numbers = [at for at in range(many) for _ in range(each)]
    column = pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), pa.array(roots, pa.binary()))
    words = pa.array([f"{at}" for at in range(many * each)])
    return pa.RecordBatch.from_arrays([words, column if by_number else column.dictionary_decode()], ROOTED.names)


@pytest.mark.parametrize(("tasks", "move_by_number"), [(1, True), (3, True), (9, False)])
def test_roots_that_come_by_number_are_those_of_the_same_tuples(tasks: int, move_by_number: bool) -> None:
    """Also where others of the block come without, and where roots by number would be more than roots without, since each task gets all."""
    route = TupleRoute(Grouping("shuffle"), tasks, ROOTED)
    plain = [rooted(20, 5, by_number=False), rooted(6, 5, by_number=False), rooted(2, 1, by_number=False)]
    numbered = [rooted(20, 5, by_number=True), plain[1].slice(0, 10), rooted(6, 5, by_number=True).slice(10), plain[2]]
    assert sent(route, numbered) == sent(route, plain)
    writer = BlockWriter((route,), 3)
    assert not [*writer.add(numbered[0])]
    (block,) = writer.flush()
    moved = pa.ipc.open_stream(block.column("__data")[0].as_py()).schema.field(ROOTS.name).type
    assert pa.types.is_dictionary(moved) == move_by_number


def test_the_roots_of_tuples_that_stem_from_others_come_once_each() -> None:
    given = RootsColumn(pa.array([b"8 bytes!", None, b"or eight"]))
    column = roots_column(RootRuns(given, [2, 2, 5]), in_arrow=True)
    assert column.to_pylist() == [b"8 bytes!"] * 2 + [b"or eight"] * 3 == list(RootRuns(given, [2, 2, 5]))
    assert len(column.dictionary) == 3
    again = roots_column(RootRuns(RootsColumn(column), [1, 2, 3, 4, 5]), in_arrow=True)
    assert again.type == pa.binary()
    assert again.to_pylist() == column.to_pylist()


def test_a_task_chunk_has_all_roots_where_somebody_needs_an_arrow_batch() -> None:
    chunk = TaskChunk(ROOTED, 0, batch=rooted(2, 3, by_number=True))
    assert chunk.batch().schema == arrow_schema(ROOTED)
    assert list(chunk.values()) == [tuple(row.values()) for row in chunk.batch().to_pylist()]
