"""Settings of a single step, said after it: `.on_error("dead_letter")`, `.parallelism(4)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, cast

from penstock.frontends.streams.naming import recorded
from penstock.graph.nodes.policy import Policy

if TYPE_CHECKING:
    from penstock.frontends.streams.stream import Stream


class Settable:
    """What can be said of the step that a stream comes from."""

    @recorded
    def on_error(self, policy: Policy) -> Self:
        """What the step does with a record it fails on.

        Args:
            policy: 'fail', 'dead_letter', 'skip', or `ps.retry(3, then='dead_letter')`.

        Returns:
            The same stream.

        Raises:
            FlowError: the step runs no Python, or is a source.

        >>> import penstock as ps
        >>> words = ps.Flow("demo").source("words", ps.items(["1", "x"], "word string"))
        >>> words.map("numbers", lambda row: int(row.word), "n int").on_error("dead_letter")
        Stream('numbers': n int)
        """
        stream = cast("Stream", self)
        stream.flow.builder.set_on_error(stream.port, policy)
        return self

    @recorded
    def parallelism(self, tasks: int) -> Self:
        """How many tasks the step runs as. It may change between runs; state moves along.

        Args:
            tasks: at most as many as the flow has key groups (128 unless `key_groups` says otherwise).

        Returns:
            The same stream.

        Raises:
            FlowError: it is not, or the step is not by key.

        >>> import penstock as ps
        >>> words = ps.Flow("demo").source("words", ps.items([], "word string"))
        >>> words.key_by("word").count("n").parallelism(8).updates
        ('word',)
        """
        stream = cast("Stream", self)
        stream.flow.builder.set_parallelism(stream.port, tasks)
        return self
