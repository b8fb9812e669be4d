"""Which bolts only read the fields of their tuples: those get tuples without roots, and none that may keep a tuple does."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as ps
from penstock.kernels.topology.tuple_uses import only_reads_fields, records_given
from penstock.testing import TrackedTopology


class Reads:
    def by_name(self, tup: Any) -> Any:
        return [(tup.word, tup.n + 1)]

    def by_position(self, tup: Any) -> Any:
        return [tup[0], tup[1]] if tup.is_tick else tup.values

    def nothing(self, tup: Any) -> None:
        return None

    def in_a_loop(self, tup: Any) -> Any:
        many = 0
        for word in tup.line.split():
            many += len(word)
        return [many]


class Keeps:
    kept: Any = None

    def attribute(self, tup: Any) -> None:
        self.kept = tup

    def other_name(self, tup: Any) -> None:
        other = tup
        self.kept = other

    def handed_on(self, tup: Any) -> None:
        print(tup)

    def roots(self, tup: Any) -> Any:
        return tup.roots

    def method(self, tup: Any) -> Any:
        return tup.asdict()

    def bound_method(self, tup: Any) -> Any:
        self.kept = tup.asdict

    def closure(self, tup: Any) -> Any:
        return [lambda: tup]

    def generator(self, tup: Any) -> Any:
        yield tup.word

    def all_names(self, tup: Any) -> Any:
        return locals()

    def unpacked(self, tup: Any) -> Any:
        return (*tup,)

    def any_number(self, *given: Any) -> Any:
        return given


def methods(of: object) -> list[Any]:
    return [getattr(of, name) for name in vars(type(of)) if callable(getattr(of, name)) and name[0] != "_"]


@pytest.mark.parametrize("process", methods(Reads()), ids=lambda p: p.__name__)
def test_fields_that_are_read_keep_nothing(process: Any) -> None:
    assert only_reads_fields(process)


@pytest.mark.parametrize("process", [*methods(Keeps()), print, len], ids=lambda p: p.__name__)
def test_whatever_else_is_done_may_keep_the_tuple(process: Any) -> None:
    assert not only_reads_fields(process)


class Gives:
    """How many records each gives stands in its name."""

    def one(self, tup: Any) -> Any:
        return ((tup.word, 1),)

    def two(self, tup: Any) -> Any:
        if tup.n:
            return [tup.n, 2]
        return (3, 4)

    def none(self, tup: Any) -> None:
        print(tup.n)

    def unknown_list(self, tup: Any) -> Any:
        return tup.line.split()

    def unknown_branch(self, tup: Any) -> Any:
        if tup.n:
            return [1]
        return None

    def unknown_choice(self, tup: Any) -> Any:
        return [tup.n, 1] if tup.n else tup.others

    def unknown_copies(self, tup: Any) -> Any:
        return [*tup.others, 1]

    def unknown_text(self, tup: Any) -> Any:
        return "abc"

    def unknown_generator(self, tup: Any) -> Any:
        yield tup.word


@pytest.mark.parametrize("process", [*methods(Gives()), print], ids=lambda p: p.__name__)
def test_how_many_records_a_bolt_gives_is_known_where_its_code_shows_it(process: Any) -> None:
    numbers = {"none": 0, "one": 1, "two": 2}
    assert records_given(process) == numbers.get(process.__name__)


class Numbers(ps.Spout):
    outputs, reliable = "n bigint", True
    left: Any = range(6)

    def next_tuple(self) -> Any:
        for n in self.left:
            self.emit(n, id=n)
        self.left = ()
        return ps.END


class Fails(ps.BasicBolt):
    """Reads fields only, and fails some tuples."""

    outputs = "n bigint"
    stateful = False

    def process(self, tup: Any) -> Any:
        if tup.n % 3 == 0:
            raise ps.FailedException("not this one")
        return [tup.n]


@pytest.mark.parametrize("is_read", [True, False])
def test_a_tuple_without_roots_fails_its_message_all_the_same(is_read: bool) -> None:
    assert only_reads_fields(Fails().process)
    top = ps.Topology("fails")
    top.spout("numbers", Numbers())
    top.bolt("fails", Fails()).shuffle("numbers")
    if is_read:
        top.sink("out", ps.console(), from_="fails")
    tracked = TrackedTopology(top)
    tracked.run()
    assert (tracked.acked("numbers"), sorted(tracked.failed("numbers"))) == ([1, 2, 4, 5], [0, 3])
