"""How long the tuples of windows keep their messages open: until they leave, or until a batch has saved them."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as ps
from penstock.errors import FlowError
from penstock.testing import TrackedTopology
from tests.frontends.test_acking import Double, Windowed, numbers


class Saved(ps.StatefulWindowedBolt):
    """Windows of 6 that hold 2 tuples in memory; the one that begins with `bad` fails."""

    outputs = "n array<bigint>"
    window, slide, in_memory, bad = 6, 2, 2, -1

    def init_state(self, state: Any) -> None:
        self._state = state

    def process_window(self, window: Any) -> Any:
        if window.tuples[-1].n == self.bad:
            raise ps.FailedException("a bad window")
        yield [tup.n for tup in window]


def test_tuples_of_a_stateful_window_are_acked_with_the_batch_that_saves_them() -> None:
    """A window may hold more tuples than messages may be open, and longer than these may take."""
    top = numbers(10, {"topology.max.spout.pending": 3})
    top.bolt("saved", Saved()).global_("numbers")
    top.sink("out", ps.console(), from_="saved")
    tracked = TrackedTopology(top)
    tracked.run()
    assert tracked.driver.results()["out"][-1].n == [4, 5, 6, 7, 8, 9]
    assert (tracked.acked("numbers"), tracked.pending("numbers")) == ([*range(10)], 0)
    tracked.advance(100)
    assert tracked.failed("numbers") == []


def test_a_stateful_window_that_fails_fails_the_tuples_that_are_not_saved() -> None:
    class Bad(Saved):
        bad = 3

    top = numbers(4, {"topology.max.spout.pending": 2}, replays=False)
    top.bolt("saved", Bad()).global_("numbers")
    tracked = TrackedTopology(top)
    tracked.run()
    assert (sorted(tracked.acked("numbers")), sorted(tracked.failed("numbers"))) == ([0, 1], [2, 3])


def test_what_a_stateful_window_emits_is_anchored_to_tuples_that_are_not_saved() -> None:
    class Fails(ps.BasicBolt):
        def process(self, tup: Any) -> None:
            if len(tup.n) == 4:
                raise ps.FailedException("four")

    top = numbers(4, {"topology.max.spout.pending": 2}, replays=False)
    top.bolt("saved", Saved()).global_("numbers")
    top.bolt("fails", Fails()).shuffle("saved")
    tracked = TrackedTopology(top)
    tracked.run()
    assert (sorted(tracked.acked("numbers")), sorted(tracked.failed("numbers"))) == ([0, 1], [2, 3])
    assert tracked.is_done


@pytest.mark.parametrize(
    ("about", "config", "expected"),
    [
        ({"window": "20s"}, {}, r"timeout.secs together \(30 s\), got 40 s: messages would fail"),
        ({"window": 5, "slide": "40s"}, {}, r"\(30 s\), got 40 s"),
        ({"window": 4, "slide": 2}, {"topology.max.spout.pending": 5}, r"together \(5\), got 6"),
    ],
)
def test_a_window_that_outlasts_its_messages_is_refused(about: Any, config: Any, expected: str) -> None:
    """As in Storm: length and slide together. Where nobody tracks the messages, and where the state saves the tuples, any window will do."""
    made = type("Own", (Windowed,), about)

    def graph(bolt: Any, more: Any = ()) -> Any:
        top = numbers(1, {**config, **dict(more)})
        top.bolt("between", Double()).shuffle("numbers")
        top.bolt("own", bolt).global_("between")
        return top.graph

    with pytest.raises(FlowError, match=f"bolt 'own'.*messages of 'numbers'.*{expected}"):
        graph(made())
    assert graph(made(), {"topology.acker.executors": 0})
    assert graph(type("Kept", (Saved,), about)())
