"""Components of pystorm, as a project of its users has them: a spout and bolts, run by name."""

from __future__ import annotations

import collections
import sys
from typing import Any

from pystorm import BatchingBolt, Bolt, ReliableSpout, Spout, TicklessBatchingBolt


class Numbers(Spout):  # type: ignore[misc]  # pystorm has no types
    def initialize(self, conf: Any, context: Any) -> None:
        self.n = 0

    def next_tuple(self) -> None:
        if self.n < 3:
            self.n += 1
            self.emit([self.n, {"text": f"number {self.n}"}])


class Sentences(ReliableSpout):  # type: ignore[misc]
    def initialize(self, conf: Any, context: Any) -> None:
        self.left = collections.deque(["a b a", "b c", "a"])

    def next_tuple(self) -> None:
        if self.left:
            sentence = self.left.popleft()
            self.emit([sentence], tup_id=sentence)


class Split(Bolt):  # type: ignore[misc]
    def process(self, tup: Any) -> None:
        for word in tup.values[0].split():
            self.emit([word])


class Count(Bolt):  # type: ignore[misc]
    def initialize(self, conf: Any, context: Any) -> None:
        self.counts: collections.Counter[str] = collections.Counter()

    def process(self, tup: Any) -> None:
        word = tup.values[0]
        self.counts[word] += 1
        self.logger.info("counted %s", word)
        self.report_metric("counted", 1)
        self.emit([word, self.counts[word]])


class Context(Bolt):  # type: ignore[misc]
    def initialize(self, conf: Any, context: Any) -> None:
        self.context = context
        self.conf = conf

    def process(self, tup: Any) -> None:
        self.emit([self.context, self.conf, tup.component, tup.task, tup.stream], need_task_ids=True)


class Asks(Bolt):  # type: ignore[misc]
    def process(self, tup: Any) -> None:
        got = self.emit([tup.values[0]], need_task_ids=True)
        self.emit([f"{tup.values[0]} went to {got}"], stream="said")


class Groups(BatchingBolt):  # type: ignore[misc]
    ticks_between_batches = 1

    def group_key(self, tup: Any) -> Any:
        return tup.values[0]

    def process_batch(self, key: Any, tups: Any) -> None:
        self.emit([key, len(tups)])


class Timed(TicklessBatchingBolt):  # type: ignore[misc]
    secs_between_batches = 0.05

    def group_key(self, tup: Any) -> Any:
        return tup.values[0]

    def process_batch(self, key: Any, tups: Any) -> None:
        self.emit([key, len(tups)])


class Unruly(Bolt):  # type: ignore[misc]
    def process(self, tup: Any) -> None:
        if tup.values[0] == "fail":
            self.fail(tup)
            return
        raise ValueError(f"no {tup.values[0]}")


if __name__ == "__main__":
    serializer = sys.argv[2] if len(sys.argv) > 2 else "json"
    globals()[sys.argv[1]](serializer=serializer).run()
