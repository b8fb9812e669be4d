"""Key groups: the parts in which keys and their state move between tasks.

The first 15 bits of a key hash are its *slot*. A flow divides the 32,768 slots into key groups of one size, whose number it chooses once, and a task
owns a range of groups; the ranges of two tasks differ by one group at most. A slot is the last 15 bits of Spark's `hash`, reversed: with a power of
two of tasks Spark's own hash partitioning sends a record to the task that owns its slot, and the keys of a task still stand together in
the order of key hashes.
"""

from __future__ import annotations

SLOT_BITS = 15
SLOTS = 1 << SLOT_BITS
"""The slots of the key space, and so the most key groups and the most tasks."""
HASH_BITS = 64 - SLOT_BITS
"""The bits of a key hash after its slot."""
KEY_GROUPS = 128
"""The number of key groups of a flow that chooses none."""


def is_power_of_two(number: int) -> bool:
    """Whether a number is a power of two.

    >>> [n for n in range(10) if is_power_of_two(n)]
    [1, 2, 4, 8]
    """
    return number > 0 and not number & (number - 1)


def reversed_bits(number: int, bits: int) -> int:
    """The last bits of a number in reverse order.

    >>> reversed_bits(0b001, 3), reversed_bits(6, 3)
    (4, 3)
    """
    made = 0
    for _ in range(bits):
        made, number = made << 1 | number & 1, number >> 1
    return made


def owned_slots(task: int, tasks: int, groups: int) -> tuple[int, int]:
    """The slots that a task owns: the first, and the one after the last.

    With a power of two of tasks the task `t` owns the range with the number that `t` is in reverse, as Spark's partitioning wants it.

    >>> [owned_slots(task, 3, 128) for task in range(3)]
    [(0, 10752), (10752, 21760), (21760, 32768)]
    >>> [owned_slots(task, 4, 128) for task in range(4)]
    [(0, 8192), (16384, 24576), (8192, 16384), (24576, 32768)]
    """
    at = reversed_bits(task, tasks.bit_length() - 1) if is_power_of_two(tasks) else task
    size = SLOTS // groups
    return at * groups // tasks * size, (at + 1) * groups // tasks * size


def slot_hash(slot: int) -> int:
    """The lowest key hash of a slot. Key hashes are signed, and in the order of their slots.

    >>> slot_hash(0) == -(1 << 63), slot_hash(SLOTS // 2)
    (True, 0)
    """
    return (slot - SLOTS // 2) << HASH_BITS
