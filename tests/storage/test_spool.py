"""A content that is sent again is the same content, or none."""

from __future__ import annotations

import errno
import io
from collections.abc import Iterator

import pytest

from penstock.storage.spool import PART, SourceFailed, Spool, repeatable


def parts() -> Iterator[bytes]:
    return iter([b"%d" % n * (PART // 2) for n in range(6)])


def test_a_long_content_is_the_same_each_time() -> None:
    with repeatable(parts()) as content:
        assert isinstance(content, Spool)
        begun = content.parts()
        next(begun), next(begun)
        assert [b"".join(content.parts()) for _ in range(2)] == [b"".join(parts())] * 2


class FullDisk(io.BytesIO):
    """A temporary file on a disk that is full after some bytes."""

    def write(self, data: object) -> int:
        if self.tell() >= PART // 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)  # type: ignore[arg-type]


def test_a_part_that_could_not_be_kept_is_not_left_out_the_next_time() -> None:
    """The disk of temporary files is full: the content cannot be sent again, and must not be sent in part."""
    content = Spool(b"", parts(), FullDisk())
    for _ in range(2):
        with pytest.raises(SourceFailed) as failed:
            b"".join(content.parts())
        assert isinstance(failed.value.__cause__, OSError)
