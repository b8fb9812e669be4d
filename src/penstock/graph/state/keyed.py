"""The state of a keyed step, as a kernel sees it: a value for each key.

A kernel describes how keys and values look, names the keys it will touch, reads them, changes the values, and puts them back; what
happens to them at a barrier is the host's affair.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from penstock.graph.arrays import BoolArray, IntArray
from penstock.graph.state.layout import Layout

if TYPE_CHECKING:
    import pyarrow as pa


class KeyedState(Protocol):
    """The state of one step, as far as the task at hand owns it.

    A kernel in a hurry may write to `cache` itself, and must then name the key in `touched`. One whose keys and values are all typed may
    read and put many keys at once, as columns; keys that were prefetched before must be prefetched again after it.
    """

    cache: dict[Any, Any]
    touched: dict[Any, None]
    is_columnar: ClassVar[bool]
    """Whether it keeps columns, so that many keys are read and put faster as such."""

    def describe(self, layout: Layout) -> None:
        """Says how keys and values look; before anything else."""

    def prefetch(self, keys: list[Any], hashes: list[int] | None) -> None:
        """Prefetches keys; each must have been named before it is asked for.

        A key hash is one 64-bit number whose last seven bits are its key group; a host that needs none gives none.
        """

    def get(self, key: Any, default: Any = None) -> Any:
        """What is kept for a key, or the default."""

    def put(self, key: object, value: object) -> None:
        """Keeps a value for a key."""

    def delete(self, key: object) -> None:
        """Forgets a key."""

    def release(self, keys: list[Any]) -> None:
        """Lets go of keys that were prefetched and not changed, so that they take no memory; they must be prefetched again."""

    def read_columns(self, keys: pa.RecordBatch, hashes: IntArray) -> tuple[pa.RecordBatch, BoolArray] | None:
        """What is kept for many keys, a column for each part of the value, and for which keys something is.

        The keys come as the columns of the layout, each key once, with their hashes. Where nothing is kept all parts are null. None where
        a value that was put by key does not fit the type of its column: these keys must be read one by one.
        """

    def put_columns(self, keys: pa.RecordBatch, hashes: IntArray, values: pa.RecordBatch, gone: BoolArray) -> None:
        """Keeps values for many keys, and forgets those that are gone."""

    def items(self) -> Iterator[tuple[Any, Any]]:
        """All that is kept."""

    def sizes(self, column: str) -> tuple[int, int]:
        """How many keys there are, and how many items their lists in a column of the value hold, without reading the rest."""

    def snapshot(self) -> bytes:
        """What is kept at a barrier, as bytes from which `restore` goes on; a store on disk writes its files first and names them."""

    def restore(self, snapshot: bytes) -> None:
        """Rehashes all that is kept by what a snapshot holds."""
