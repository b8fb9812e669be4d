"""Looking at a checkpoint runs no code of it: values that are pickled are shown as far as they are plain. No JVM."""

from __future__ import annotations

import datetime
import pickle
from collections import OrderedDict, deque
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from penstock import state
from penstock.graph.state.layout import Column, Layout
from penstock.graph.state.schema import StateField, StateSchema
from penstock.spark.checkpoint.changes import FlowLayout
from penstock.spark.checkpoint.savepoint import directory_of, take
from penstock.state.opaque import look_at
from penstock.state.store import StateStore
from penstock.state.values import FileState
from penstock.storage import LocalStorage
from tests.command_line import make_app
from tests.spark.checkpoints import SCHEMAS, WANTED, batch, begin

LAYOUT = Layout((Column("word", pa.string()),), (Column("value"),), single=True)


class Bomb:
    """A value that creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self.path,))


def keep(folder: Path, version: int, values: dict[str, Any]) -> None:
    """A version in which a step keeps some pickled values."""
    schemas = {"step": StateSchema("step", "process", "values", (StateField("word", "string"),))}
    begin(folder, FlowLayout("shop", (("one", "files"),), schemas))
    store = StateStore(LocalStorage(folder / "state"), run="r", schemas=schemas)
    made = FileState(store.begin(version, {"step": 1}, version - 1)["step"], 0)
    made.describe(LAYOUT)
    made.prefetch([(w,) for w in values], [n << 7 for n in range(len(values))])
    for word, value in values.items():
        made.put((word,), value)
    made.save()
    store.publish(version)


@pytest.mark.parametrize(
    "command", [["list"], ["show"], ["show", "--format", "json"], ["show", "--key", "a"], ["export"]]
)
def test_a_crafted_checkpoint_runs_nothing(tmp_path: Path, command: list[str]) -> None:
    mark, folder = tmp_path / "created", tmp_path / "flow"
    keep(folder, 0, {"a": Bomb(mark), "b": [1, 2]})
    more = ["-o", str(tmp_path / "out.json")] if command[0] == "export" else []
    done = CliRunner().invoke(make_app(), ["state", command[0], str(folder), *command[1:], *more])
    assert done.exit_code == 0, done.output
    text = done.output if command[0] != "export" else (tmp_path / "out.json").read_text()
    assert command[0] == "list" or "<pickled, " in text
    assert not mark.exists()
    assert state.read(folder, "step").num_rows == 2
    assert not mark.exists()
    made = FileState(StateStore(LocalStorage(folder / "state")).begin(1, {"step": 1}, 0)["step"], 0)
    made.describe(LAYOUT)
    made.prefetch([("a",)], [0])
    assert mark.exists(), "the flow itself opens it: the bomb is real"


def test_a_savepoint_of_a_crafted_checkpoint_runs_nothing(tmp_path: Path) -> None:
    """Taking, verifying and looking at it."""
    mark, folder = tmp_path / "created", begin(tmp_path / "shop", WANTED)
    batch(folder, 0, {"a": 1})
    for path in folder.rglob("*.pickle"):
        path.write_bytes(pickle.dumps(Bomb(mark)))
    made = take(folder, directory_of("one", folder))
    made.verify()
    assert {s.name for s in state.stores(made.folder)} == set(SCHEMAS)
    state.read(made.folder, "count")
    assert not mark.exists()


@pytest.mark.parametrize(
    "value",
    [
        *(1, 2.5, "x", b"y", None, True, [1, [2]], (1, 2), {"a": {"b": 1}}, {1, 2}, frozenset([3]), 1j),
        *(Decimal("1.5"), datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)),
        *(datetime.timedelta(seconds=1), OrderedDict(a=1), deque([1, 2])),
    ],
)
def test_plain_values_are_shown_as_they_are(value: Any) -> None:
    assert look_at(pickle.dumps(value, 5)) == value


class Own:
    """A class of the user's."""


@pytest.mark.parametrize("value", [Own(), print, Path("a"), [Own()], {"a": len}])
def test_everything_else_is_opaque(value: Any) -> None:
    data = pickle.dumps(value, 5)
    assert look_at(data) == f"<pickled, {len(data):,} bytes>"


@pytest.mark.parametrize(
    "data", [b"", b"garbage", pickle.dumps([1] * 100)[:-5], b"\x80\x05\x8c\x02os\x8c\x06system\x93."]
)
def test_damaged_pickles_are_opaque(data: bytes) -> None:
    assert look_at(data) == f"<pickled, {len(data):,} bytes>"


def doubled(times: int) -> list[Any]:
    """A list of a few dozen lists that stands for two to the power of so many parts."""
    made: list[Any] = []
    for _ in range(times):
        made = [made, made]
    return made


def cycle() -> list[Any]:
    made: list[Any] = []
    made.append(made)
    return made


UNSHOWN = {
    "doubled": doubled(60),
    "some": [doubled(60)] * 3,
    "cycle": cycle(),
    "inside": {"a": cycle()},
    "long": 1 << 100_000,
    "half": ["\ud800"],
    "many": [[0] * 1000] * 1000,
}


@pytest.mark.parametrize("value", UNSHOWN.values(), ids=UNSHOWN)
def test_what_cannot_be_shown_is_opaque(value: Any) -> None:
    """Whoever looks gets an answer, and at once: a few bytes of a pickle may stand for more than a machine holds."""
    data = pickle.dumps(value, 5)
    assert look_at(data) == f"<pickled, {len(data):,} bytes>"


def test_what_cannot_be_shown_hides_nothing_else(tmp_path: Path) -> None:
    keep(tmp_path / "flow", 0, {"a": doubled(60), "b": "\x1b]0;title\x07", "c": 1 << 100_000})
    done = CliRunner().invoke(make_app(), ["state", "show", str(tmp_path / "flow")])
    assert done.exit_code == 0, done.output
    assert done.output.count("<pickled, ") == 2
    assert r"\x1b]0;title\x07" in done.output
    assert "\x1b" not in done.output
