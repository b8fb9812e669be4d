"""A spout and bolts on Storm's own adapter for Python, whose module `storm` lies beside them."""

from __future__ import annotations

import sys
from typing import Any

import storm  # type: ignore[import-not-found]  # the adapter of Storm, fetched by the test


class Sentences(storm.Spout):  # type: ignore[misc]
    """Emits again what failed; says what was acked."""

    def initialize(self, conf: Any, context: Any) -> None:
        self.waiting = list(conf["own.sentences"])

    def nextTuple(self) -> None:  # noqa: N802 - Storm's name
        if self.waiting:
            sentence = self.waiting.pop(0)
            ids = storm.emit([sentence], id=sentence)
            storm.logInfo(f"{sentence} goes to {len(ids)}")

    def ack(self, id: Any) -> None:
        storm.logInfo(f"acked {id}")

    def fail(self, id: Any) -> None:
        storm.logWarn(f"failed {id}")
        self.waiting.append(id)


class Split(storm.BasicBolt):  # type: ignore[misc]
    """The words of a sentence, with the tasks that they went to before; the first sentence with a cross fails."""

    failed = False

    def process(self, tup: Any) -> None:
        if "x" in tup.values[0] and not Split.failed:
            Split.failed = True
            raise ValueError("a cross")
        for word in tup.values[0].split():
            ids = storm.emit([word, len(word)])
            storm.emit([word, ids[0]], stream="sent")
        storm.rpcMetrics("sentences", 1)


class Count(storm.Bolt):  # type: ignore[misc]
    """Counts words, and acks by itself."""

    def initialize(self, conf: Any, context: Any) -> None:
        self.counts: dict[str, int] = {}
        self.task = context["taskid"]

    def process(self, tup: Any) -> None:
        word = tup.values[0]
        self.counts[word] = self.counts.get(word, 0) + 1
        storm.emit([word, self.counts[word], self.task, tup.component], anchors=[tup])
        storm.ack(tup)


globals()[sys.argv[1]]().run()
