"""Blocks of tuples in files of the machine on which all tasks run: what Spark moves in their place says where they are.

Files that grow have what a spout emits in a bounded run, one for each task of the first bolts. The driver appends a block as soon as the spout has emitted enough, so that bolts work
while the spout goes on. A task that runs again reads its file from the beginning.

What bolts emit for bolts is in a file of the task that emits it, until the batch ends. A task that runs again writes another file, and what moves names that one.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from penstock.errors import RunError
from penstock.kernels.topology.blocks import BLOCK, BlockWriter, TupleRoute
from penstock.storage import make_directory

_MARK = b"penstock-followed:"
"""Stands before the path of a file where a block would be; those of Arrow begin otherwise."""
_STORED = b"penstock-stored:"
"""Stands before the place of a block in a file, its length, and the path."""
SMALL = 4096
"""A block of fewer bytes moves itself."""
_LENGTH = 8
_END, _BROKEN = 0, (1 << 64) - 1
_PAUSE = 0.002


class FollowedFiles:
    """The writing side: a file for each task of each bolt that reads a spout."""

    def __init__(self, folder: Path, routes: Sequence[TupleRoute]) -> None:
        make_directory(folder)
        self.writer = BlockWriter(routes, 0)
        self.paths = {(at, to): folder / f"{at}-{to}" for at, route in enumerate(routes) for to in range(route.tasks)}
        self.files: dict[tuple[int, int], BinaryIO] = {key: path.open("wb") for key, path in self.paths.items()}

    def add(self, batch: pa.RecordBatch) -> None:
        """Takes tuples; those of a block that is complete can be read at once."""
        for blocks in self.writer.add(batch):
            self._append(blocks)

    def _append(self, blocks: pa.RecordBatch) -> None:
        for reader, to, _, _, data in zip(*(column.to_pylist() for column in blocks.columns), strict=True):
            self.files[reader, to].write(len(data).to_bytes(_LENGTH, "little") + data)
            self.files[reader, to].flush()

    def end(self, *, is_whole: bool) -> None:
        """No more will come; those who follow fail unless it is whole. What has ended before stays as it is."""
        for blocks in self.writer.flush() if is_whole and self.files else ():
            self._append(blocks)
        files, self.files = self.files, {}
        wrong = [error for key, file in files.items() if (error := self._close(key, file, is_whole=is_whole))]
        if wrong and is_whole:
            raise wrong[0]

    def _close(self, key: tuple[int, int], file: BinaryIO, *, is_whole: bool) -> OSError | None:
        """Says that a file has ended; where not even that can be written, the file is deleted, which its readers see too."""
        try:
            file.write((_END if is_whole else _BROKEN).to_bytes(_LENGTH, "little"))
            file.close()
        except OSError as error:
            self.paths[key].unlink(missing_ok=True)
            return error
        return None

    def references(self) -> pa.Table:
        """What stands for the blocks of each task, in the form of one block."""
        made = [(at, to, 0, 0, _MARK + str(path).encode()) for (at, to), path in self.paths.items()]
        columns = zip(zip(*made, strict=True), BLOCK.types, strict=True)
        return pa.table([pa.array(values, kind) for values, kind in columns], schema=BLOCK)


class StoredBlocks:
    """The blocks that one task emits, in a file of its own."""

    def __init__(self, folder: str) -> None:
        self.path = Path(folder) / uuid.uuid4().hex
        self.file: BinaryIO | None = None

    def placed(self, blocks: pa.RecordBatch) -> pa.RecordBatch:
        """Writes blocks; what moves in their place says where they are."""
        *beside, data = blocks.columns
        made = [self._placed(each) if len(each) >= SMALL else each for each in data.to_pylist()]
        if self.file is not None:
            self.file.flush()
        return pa.RecordBatch.from_arrays([*beside, pa.array(made, pa.binary())], schema=BLOCK)

    def _placed(self, data: bytes) -> bytes:
        if self.file is None:
            self.file = self.path.open("wb")
        at = self.file.tell()
        self.file.write(data)
        return _STORED + f"{at} {len(data)} {self.path}".encode()

    def close(self) -> None:
        """No more will come."""
        if self.file is not None:
            self.file.close()


def blocks_at(data: bytes) -> Iterator[bytes]:
    """The blocks that one stands for: itself, one in a file, or those of a file that grows, as they come.

    >>> list(blocks_at(b"a block"))
    [b'a block']
    """
    if data.startswith(_STORED):
        yield _read(*data.removeprefix(_STORED).decode().split(" ", 2))
        return
    if not data.startswith(_MARK):
        yield data
        return
    with Path(data.removeprefix(_MARK).decode()).open("rb", buffering=0) as file:
        while (length := int.from_bytes(_awaited(file, _LENGTH), "little")) != _END:
            if length == _BROKEN:
                raise RunError("the spout ended with an error")
            yield _awaited(file, length)


def _read(at: str, length: str, path: str) -> bytes:
    with Path(path).open("rb", buffering=0) as file:
        file.seek(int(at))
        return _awaited(file, int(length))


def _awaited(file: BinaryIO, length: int) -> bytes:
    """So many bytes, once they are there."""
    parts = [b""]
    while length:
        part = file.read(length)
        if not part:
            if os.fstat(file.fileno()).st_nlink == 0:
                raise RunError(f"{file.name} ends too early and was deleted: its disk is full, or its run has ended")
            time.sleep(_PAUSE)
            continue
        parts.append(part)
        length -= len(part)
    return b"".join(parts)
