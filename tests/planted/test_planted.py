"""Each known bug is planted, and the check that must catch it fails; without the bug the same check passes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.errors import PenstockError
from penstock.state.file import close_removed
from tests.kafka.conftest import Kafka
from tests.planted.bugs import FAST, KAFKA, SPARK
from tests.planted.plant import Bug, Room

FAILED = (AssertionError, pytest.fail.Exception, PenstockError)
"""How a test fails: what it asserts does not hold, or Penstock gives up where it must not."""

Tell = Callable[[str, object], None]


def catches(bug: Bug, room: Room, monkeypatch: pytest.MonkeyPatch, tell: Tell) -> None:
    """The check passes; with the bug it fails, and says what it should."""
    bug.check(_aside(room, "right"))
    with monkeypatch.context() as planted:
        bug.patch(planted)
        with pytest.raises(FAILED) as failed:
            bug.check(_aside(room, "wrong"))
    said = str(failed.value)
    assert re.search(bug.says, said, re.DOTALL), f"{bug.name}: the check failed for another reason: {said}"
    tell("planted", bug.name)
    tell("caught", said.strip().splitlines()[0])


def _aside(room: Room, name: str) -> Room:
    (room.path / name).mkdir()
    return replace(room, path=room.path / name)


def _each(bugs: list[Bug]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("bug", bugs, ids=lambda bug: bug.name)


@_each(FAST)
def test_a_planted_bug_is_caught(
    bug: Bug, fast_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Tell
) -> None:
    catches(bug, Room(fast_path), monkeypatch, record_property)
    close_removed()


@pytest.mark.spark
@_each(SPARK)
def test_a_bug_planted_in_a_sink_is_caught(
    bug: Bug, penstock_spark: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Tell
) -> None:
    catches(bug, Room(tmp_path, penstock_spark), monkeypatch, record_property)


@pytest.mark.spark
@pytest.mark.kafka
@_each(KAFKA)
def test_a_bug_planted_in_the_kafka_writer_is_caught(
    bug: Bug, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Tell
) -> None:
    catches(bug, Room(tmp_path, kafka=kafka), monkeypatch, record_property)


def test_there_are_enough_bugs_and_each_has_a_name_of_its_own() -> None:
    names = [bug.name for bug in (*FAST, *SPARK, *KAFKA)]
    assert len(set(names)) == len(names) >= 20


def test_the_guide_names_every_planted_bug() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "delivery.md").read_text()
    assert [bug.name for bug in (*FAST, *SPARK, *KAFKA) if bug.name not in guide] == []
