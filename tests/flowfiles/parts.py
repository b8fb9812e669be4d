"""Components that the Flux files of the tests name."""

from __future__ import annotations

from typing import Any

import penstock as ps


class Sentences(ps.Spout):
    outputs = "sentence string"

    def __init__(self, sentences: list[str], times: int = 1) -> None:
        self.left = list(sentences) * times

    def next_tuple(self) -> Any:
        if not self.left:
            return ps.END
        self.emit((self.left.pop(0),))
        return None


class Separator:
    def __init__(self, sign: str = " ") -> None:
        self.sign = sign
        self.shout = False
        self.suffixes: list[str] = []

    @staticmethod
    def of(sign: str) -> Separator:
        return Separator(sign)

    def setShouting(self, shout: bool) -> None:  # noqa: N802
        self.shout = shout

    def with_suffix(self, *suffixes: str) -> None:
        self.suffixes += suffixes


class Split(ps.Bolt):
    outputs = {"default": "word string", "long": "word string"}
    stateful = False

    def __init__(self, separator: Separator | None = None) -> None:
        self.separator = separator or Separator()
        self.more: list[Separator] = []
        self.limit = 100

    def process(self, tup: Any) -> None:
        for word in tup.sentence.split(self.separator.sign):
            made = (word.upper() if self.separator.shout else word) + "".join(self.separator.suffixes)
            self.emit((made,), stream="long" if len(made) > self.limit else "default")


class Tasks(ps.Bolt):
    outputs = "word string, task int"

    def prepare(self, context: Any) -> None:
        self._task = context.task
        self._setting = context.config.get("own.setting")

    def process(self, tup: Any) -> Any:
        yield tup.word, self._task


class ByLength:
    """With Storm's names."""

    def prepare(self, context: Any, stream: Any, targetTasks: list[int]) -> None:  # noqa: N803
        self.tasks = targetTasks

    def chooseTasks(self, taskId: int, values: list[Any]) -> list[int]:  # noqa: N802, N803
        return [self.tasks[len(values[0]) % len(self.tasks)]]


class Source:
    def __init__(self, rows: list[str]) -> None:
        self.rows = rows

    def getTopology(self, config: dict[str, Any]) -> ps.Topology:  # noqa: N802
        top = ps.Topology("made", config)
        top.spout("rows", ps.items(self.rows, "word string"))
        top.sink("out", ps.console(), from_="rows")
        return top
