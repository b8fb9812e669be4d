"""Objects in two storages: a write that was repeated is known again, and one of another driver is not taken for it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from penstock.storage import Conflict, MirroredStorage, StorageError, Version
from penstock.storage.base import Data
from penstock.storage.memory import MemoryStorage


@dataclass
class Deaf(MemoryStorage):
    """Swaps, and loses the answer where it is to."""

    loses: bool = False

    def __post_init__(self) -> None:
        MemoryStorage.__init__(self)

    def compare_and_swap(self, name: str, expected: Version | None, data: Data) -> Version:
        version = super().compare_and_swap(name, expected, data)
        if self.loses:
            raise StorageError(f"{name!r}: the connection was lost")
        return version


def mirrored(shared: MemoryStorage) -> MirroredStorage:
    return MirroredStorage(shared, MemoryStorage(), is_swapped=lambda name: True)


@pytest.mark.parametrize("known", [b"1", None])
@pytest.mark.parametrize("then", [b"2", b"3"])
def test_a_swap_whose_answer_was_lost_can_be_written_again(known: bytes | None, then: bytes) -> None:
    """With the same content, or with what is to be kept by now."""
    shared = Deaf()
    driver = mirrored(shared)
    if known is not None:
        driver.write("settled", known)
    shared.loses = True
    with pytest.raises(StorageError, match="lost"):
        driver.write("settled", b"2")
    shared.loses = False
    driver.write("settled", then)
    driver.write("settled", b"4")
    assert shared.read("settled") == driver.read("settled") == b"4"


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_swap_of_another_driver_is_a_conflict_also_after_an_answer_that_was_lost(is_lost: bool) -> None:
    shared = Deaf()
    driver = mirrored(shared)
    driver.write("settled", b"1")
    if is_lost:
        shared.loses = True
        with pytest.raises(StorageError, match="lost"):
            driver.write("settled", b"2")
        shared.loses = False
    shared.compare_and_swap("settled", shared.read_versioned("settled")[1], b"of another")
    for content in (b"2", b"3"):
        with pytest.raises(Conflict, match="another driver"):
            driver.write("settled", content)
    assert shared.read("settled") == b"of another"
