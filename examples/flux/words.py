"""The components of the Flux example."""

import penstock as ps


class Lines(ps.Spout):
    """Lines, one after the other."""

    outputs = "line string"

    def __init__(self, lines):
        self.left = list(lines)

    def next_tuple(self):
        """The next line."""
        if not self.left:
            return ps.END
        self.emit((self.left.pop(0),))
        return None


class Count(ps.Bolt):
    """Counts words."""

    outputs = "word string, n bigint"

    def prepare(self, context):
        """Nothing is counted yet."""
        self.counts = {}

    def process(self, tup):
        """The word and its count."""
        self.counts[tup.word] = self.counts.get(tup.word, 0) + 1
        yield tup.word, self.counts[tup.word]
