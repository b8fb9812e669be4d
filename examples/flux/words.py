"""The components of the Flux example."""

import penstock as ps


class Lines(ps.Spout):
    outputs = "line string"

    def __init__(self, lines):
        self.left = list(lines)

    def next_tuple(self):
        if not self.left:
            return ps.END
        self.emit((self.left.pop(0),))
        return None


class Count(ps.Bolt):
    outputs = "word string, n bigint"

    def prepare(self, context):
        self.counts = {}

    def process(self, tup):
        self.counts[tup.word] = self.counts.get(tup.word, 0) + 1
        yield tup.word, self.counts[tup.word]
