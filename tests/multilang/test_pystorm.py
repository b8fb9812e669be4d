"""Components of pystorm as their users write them: serializers, batches, reliable spouts, metrics, logs, errors."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.errors import PenstockError
from penstock.testing import TrackedTopology, run_local, run_spark

PROGRAM = Path(__file__).parent / "programs" / "words.py"
ODD = Path(__file__).parent / "programs" / "odd.py"
SENTENCES = ["a b a", "b c", "a"]
COUNTED = [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2), ("c", 1)]


def pystorm(name: str, *more: str) -> list[str]:
    return [sys.executable, str(PROGRAM), name, *more]


@pytest.mark.parametrize("serializer", ["json", "msgpack"])
def test_a_reliable_spout_and_bolts_by_either_serializer(serializer: str) -> None:
    """All components speak it: the spout is told of acks, the counts are right, metrics and logs are there."""
    about: dict[str, Any] = {"serializer": serializer}
    top = ps.Topology("words")
    top.spout("lines", ps.ShellSpout(pystorm("Sentences", serializer), ["line"], **about), limit=3)
    top.bolt("split", ps.ShellBolt(pystorm("Split", serializer), ["word"], **about), 2).shuffle("lines")
    count = ps.ShellBolt(pystorm("Count", serializer), ["word", "n bigint"], **about)
    top.bolt("count", count).fields("split", "word")
    top.sink("out", ps.console(), from_="count")
    tracked = TrackedTopology(top)
    assert sorted(tracked.run()["out"]) == COUNTED
    assert sorted(tracked.acked("lines")) == sorted(SENTENCES)
    assert tracked.metrics["count", 0]["counted"] == 6


def test_a_program_that_speaks_the_other_serializer_is_named_with_what_it_said() -> None:
    top = ps.Topology("mixed")
    top.spout("lines", ps.items(["a"], "line string"))
    bolt = ps.ShellBolt(pystorm("Split"), ["word"], serializer="msgpack", restarts=0, timeout="5s")
    top.bolt("split", bolt).shuffle("lines")
    with pytest.raises(PenstockError, match=r"(?s)split\[0\] ended with exit code 1; it said:.*UnicodeDecodeError"):
        run_local(top)


@pytest.mark.parametrize("kind", ["Groups", "Timed"])
def test_batching_bolts_ack_when_their_batch_is_done(kind: str) -> None:
    """One gathers by ticks, the other by a timer of its own; the batch waits until the program has acked."""
    top = ps.Topology("batches")
    top.spout("words", ps.ShellSpout(pystorm("Sentences"), ["word"]), limit=3)
    config = {"topology.tick.tuple.freq.secs": 1}
    bolt = ps.ShellBolt(pystorm(kind), ["word", "n bigint"], config=config, linger="20s" if kind == "Timed" else "1ms")
    top.bolt("groups", bolt).global_("words")
    top.sink("out", ps.console(), from_="groups")
    tracked = TrackedTopology(top)
    tracked.run()
    tracked.advance(3)
    assert sorted(tracked.driver.results()["out"]) == [("a", 1), ("a b a", 1), ("b c", 1)]
    assert sorted(tracked.acked("words")) == sorted(SENTENCES)


def test_a_reliable_spout_replays_what_a_bolt_fails(caplog: pytest.LogCaptureFixture) -> None:
    """pystorm's spout emits a message again three times at most; errors of the bolt are reported."""
    top = ps.Topology("unruly")
    top.spout("lines", ps.ShellSpout(pystorm("Sentences"), ["line"]), limit=12)
    top.bolt("unruly", ps.ShellBolt(pystorm("Unruly"), ["word"])).shuffle("lines")
    tracked = TrackedTopology(top)
    with caplog.at_level(logging.INFO):
        tracked.run()
    assert not tracked.acked("lines")
    assert sorted(tracked.failed("lines")) == sorted(SENTENCES * 4)
    assert "no a b a" in caplog.text


class Numbered(ps.Spout):
    """Emits 40 words with ids, and again what failed."""

    outputs = "word string"
    reliable = True
    config = {"topology.max.spout.pending": 7}

    def __init__(self) -> None:
        self.left = [f"w{n}" for n in range(40)]
        self.failures: list[str] = []
        self.waiting = 0

    def next_tuple(self) -> Any:
        if not self.left:
            return None if self.waiting else ps.END
        word = self.left.pop(0)
        self.waiting += 1
        self.emit((word,), id=word)
        return None

    def ack(self, id: Any) -> None:
        self.waiting -= 1

    def fail(self, id: Any) -> None:
        self.waiting -= 1
        self.failures.append(id)
        self.left.append(id)


def killed(marks: Path, kind: str = "dies", spout: Any = None) -> ps.Topology:
    """A program that is killed once in the middle of its tuples."""
    top = ps.Topology("killed")
    top.spout("words", spout or Numbered())
    command = [sys.executable, str(ODD), kind]
    bolt = ps.ShellBolt(command, "word string", env={"MARKS": str(marks)}, backoff="1ms")
    top.bolt("own", bolt).shuffle("words")
    top.sink("out", ps.console(), from_="own")
    return top


def test_every_message_is_acked_or_replayed_when_its_program_is_killed(tmp_path: Path) -> None:
    tracked = TrackedTopology(killed(tmp_path))
    results = tracked.run()
    assert (tmp_path / "died").exists()
    failed = tracked.failed("words")
    assert failed, "what the program had not acked was failed"
    assert sorted(tracked.acked("words")) == sorted(f"w{n}" for n in range(40))
    assert {word for (word,) in results["out"]} == {f"w{n}" for n in range(40)}
    assert len(results["out"]) <= 40 + len(failed)
    assert tracked.is_done


@pytest.mark.spark
def test_every_message_is_acked_or_replayed_when_its_program_is_killed_on_spark(
    penstock_spark: Any, tmp_path: Path
) -> None:
    results = run_spark(killed(tmp_path), penstock_spark, {})
    assert (tmp_path / "died").exists()
    assert {word for (word,) in results["out"]} == {f"w{n}" for n in range(40)}


WORDS = sorted((f"w{n}",) for n in range(40))


@pytest.mark.parametrize("spout", [None, ps.items(WORDS, "word string")], ids=["messages", "no messages"])
@pytest.mark.parametrize("kind", ["half", "half-asks"])
def test_what_a_killed_program_emitted_for_a_tuple_that_it_had_not_acked_is_forgotten(
    kind: str, spout: Any, tmp_path: Path
) -> None:
    """Killed between an emit and the ack: the results are those of a program that nobody kills, also where it asked for the tasks."""
    results = run_local(killed(tmp_path, kind, spout))
    assert (tmp_path / "died").exists()
    assert sorted(results["out"]) == WORDS


@pytest.mark.spark
def test_results_are_those_of_an_uninterrupted_run_when_a_program_is_killed_on_spark(
    penstock_spark: Any, tmp_path: Path
) -> None:
    results = run_spark(killed(tmp_path, "half-asks"), penstock_spark, {})
    assert (tmp_path / "died").exists()
    assert sorted(results["out"]) == WORDS
