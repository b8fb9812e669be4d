"""Savepoints, restores, renames and other numbers of tasks in any order: what steps keep is what they have counted. No JVM."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.spark.checkpoint.changes import FlowLayout
from penstock.spark.checkpoint.restart import Restart
from penstock.spark.checkpoint.savepoint import directory_of, take
from penstock.state.store import StateStore
from penstock.storage import make_directory, mounted, open_storage
from tests.spark.checkpoints import SCHEMAS, WANTED, batch, begin, counts, rows
from tests.storage.objects import ObjectStorage

WORDS = st.dictionaries(st.text("abcdef", max_size=3), st.integers(-3, 9), max_size=8)
MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("batch"), WORDS, st.integers(1, 5)),
        st.tuples(st.just("cut off"), WORDS, st.integers(1, 5)),
        st.tuples(st.just("restart"), st.booleans(), st.none()),
        st.tuples(st.just("restore"), st.booleans(), st.none()),
        st.tuples(st.just("gain"), st.none(), st.none()),
        st.tuples(st.just("lose"), st.none(), st.none()),
    ),
    max_size=10,
)


@dataclass
class Model:
    """A flow whose checkpoint goes from folder to folder, and what its steps must have kept."""

    root: Path
    last: int = 0
    step: str = "count"
    kept: Counter[str] = field(default_factory=Counter)
    rows: list[tuple[int, str]] = field(default_factory=list)
    others: dict[str, Counter[str]] = field(default_factory=dict)
    made: int = 0

    def __post_init__(self) -> None:
        self.folder = begin(self.root / "shop")
        batch(self.folder, 0, {})

    @property
    def wanted(self) -> FlowLayout:
        """The flow as it is now."""
        steps = dict.fromkeys((self.step, *self.others), SCHEMAS["count"])
        return replace(WANTED, schemas={**steps, "rows": SCHEMAS["rows"]})

    def do(self, move: str, words: Any, tasks: Any) -> None:
        """One move."""
        if move in ("batch", "cut off"):
            self._count(words, tasks, through=move == "batch")
        elif move in ("restart", "restore"):
            self._start(rename=words, from_savepoint=move == "restore")
        else:
            self._change(is_gain=move == "gain")

    def _count(self, words: dict[str, int], tasks: int, *, through: bool) -> None:
        """A batch that is cut off has written its state, and runs again with what is there then."""
        batch(self.folder, self.last + 1, words, through=through, tasks=tasks)
        if through:
            self.last += 1
            for kept in (self.kept, *self.others.values()):
                for word, many in words.items():
                    kept[word] += many
            self.rows += [(self.last, word) for word in words]

    def _start(self, *, rename: bool, from_savepoint: bool = False, drop: tuple[str, ...] = ()) -> None:
        before, found = self.step, None
        if rename:
            self.made += 1
            self.step = f"count{self.made}"
        if from_savepoint:
            self.made += 1
            take(self.folder, directory_of(f"s{self.made}", self.folder))
            found, self.folder = directory_of(f"s{self.made}", self.folder), self.root / f"new{self.made}"
            make_directory(self.folder)
        start = Restart(self.folder, self.wanted, found, drop, rename={before: self.step} if rename else {})
        start.check()
        start.settle()

    def _change(self, *, is_gain: bool) -> None:
        """A step more, which begins with nothing, or one less, whose state is given up."""
        if is_gain:
            self.made += 1
            self.others[f"other{self.made}"] = Counter()
            self._start(rename=False)
        elif self.others:
            gone, _ = self.others.popitem()
            self._start(rename=False, drop=(gone,))

    def check(self) -> None:
        """Compares what is kept, and which steps there are."""
        assert counts(self.folder, self.last, self.step) == self.kept
        for name, kept in self.others.items():
            assert counts(self.folder, self.last, name) == kept
        assert rows(self.folder, self.last) == sorted(self.rows)
        files = StateStore(open_storage(self.folder / "state")).read(self.last)
        assert {step for step, each in files.items() if each} <= {self.step, "rows", *self.others}


@settings(deadline=None, max_examples=25)
@given(MOVES)
def test_what_is_kept_survives_any_savepoints_restores_renames_and_numbers_of_tasks(
    moves: list[tuple[str, Any, Any]],
) -> None:
    with mounted(Path("/bucket-of-moves"), ObjectStorage()) as root:
        model = Model(root)
        for move in moves:
            model.do(*move)
        model.check()
