"""Word count as a topology: a spout, two bolts, and groupings between them.

penstock run examples/word_count_topology.py            # live; the spout ends, the topology waits for more
penstock run examples/word_count_topology.py --batch    # until the spout is done
"""

from typing import Any

import penstock as ps

SENTENCES = (
    "the cow jumped over the moon",
    "an apple a day keeps the doctor away",
    "four score and seven years ago",
    "snow white and the seven dwarfs",
    "i am at two with nature",
)


class Sentences(ps.Spout):
    """Gives the sentences, so many times over. `at` is saved, so a restart goes on where it stood."""

    outputs = "sentence string"

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.at = 0

    def next_tuple(self) -> Any:
        """One sentence."""
        if self.at == self.rounds * len(SENTENCES):
            return ps.END
        self.emit((SENTENCES[self.at % len(SENTENCES)],))
        self.at += 1
        return None


class Split(ps.Bolt):
    """Words of sentences. It remembers nothing, and says so."""

    outputs = "word string"
    stateful = False

    def process(self, tup: Any) -> Any:
        """The words of one."""
        return tup.sentence.split()


class Count(ps.Bolt):
    """Counts in its own attributes: each task has the words that its grouping brings it."""

    outputs = "word string, n bigint"

    def prepare(self, context: Any) -> None:
        """Begins with nothing; what was counted before a restart is put back afterwards."""
        self.counts: dict[str, int] = {}

    def process(self, tup: Any) -> None:
        """One more."""
        self.counts[tup.word] = self.counts.get(tup.word, 0) + 1
        self.emit((tup.word, self.counts[tup.word]))


topology = ps.Topology("word-count-topology")
topology.spout("sentences", Sentences(rounds=20))
topology.bolt("split", Split(), parallelism=2).shuffle("sentences")
topology.bolt("count", Count(), parallelism=4).fields("split", "word")
topology.sink("out", ps.console(), from_="count")

if __name__ == "__main__":
    ps.run(topology, batch=True)
