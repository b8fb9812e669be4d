"""The base of kernels that work on columns: chunks are gathered, and looked at together when time moves."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pyarrow as pa

from penstock.graph.times import Times
from penstock.kernels.base import Context, Kernel, Out
from penstock.kernels.keyed.key_columns import MANY
from penstock.kernels.records.arrow import arrow_schema
from penstock.kernels.records.chunk import Chunk

GatheredChunks = list[tuple[int, Chunk]]
"""Chunks, each with the number of the input it is of."""


class ColumnKernel(Kernel):
    """A kernel over columns beside one over rows, which comes after it among the bases of a class.

    Few records, and what columns cannot tell, are left to the rows.
    """

    chunks: GatheredChunks
    out_schema: pa.Schema

    def open(self, context: Context) -> None:
        """Begins to gather."""
        super().open(context)
        self.chunks, self.out_schema = [], arrow_schema(self.node.output().schema)

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Gathers the records, or leaves them to the rows."""
        if not self.has_columns:
            return super().take(chunk, source)
        self.chunks.append((source, chunk))
        return ()

    @property
    def has_columns(self) -> bool:
        """Whether it works on columns here."""
        return True

    def advance(self, times: Times) -> Out:
        """What the records that were gathered make of the result."""
        chunks, self.chunks = self.chunks, []
        made = self.by_columns(chunks) if sum(len(chunk) for _, chunk in chunks) >= MANY else None
        if made is None:
            return self._by_rows(chunks, times)
        self.move(times)
        return made

    def by_columns(self, chunks: GatheredChunks) -> Out | None:
        """What comes of all chunks; None, with nothing kept of them, where columns cannot tell."""
        raise NotImplementedError

    def _by_rows(self, chunks: GatheredChunks, times: Times) -> Out:
        taken: list[tuple[str, Chunk]] = []
        for source, chunk in chunks:
            taken += super().take(chunk, source)
        return itertools.chain(taken, super().advance(times))

    def out_of(self, arrays: Sequence[pa.Array]) -> Out:
        """The columns of the result as what the kernel emits."""
        if not len(arrays[0]):
            return ()
        cast = [array.cast(field.type) for array, field in zip(arrays, self.out_schema, strict=True)]
        batch = pa.RecordBatch.from_arrays(cast, schema=self.out_schema)
        return (("out", Chunk(self.node.output().schema, batch=batch)),)
