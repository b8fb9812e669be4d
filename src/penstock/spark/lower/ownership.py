"""Which task owns a key, as Spark computes it: the key hash, the task, and how a shuffle is brought to send a record there.

With a power of two of tasks Spark's own `hash(keys) mod tasks` is the owner (`graph/state/key_groups.py`). With any other number a record is sent by
`repartitionById`. That knows nothing of keys, so behind a `groupBy` Spark would shuffle again; there a *steering* column goes last among
the keys: a function of the key, chosen so that Spark's hash of all columns is the number of the owner.
"""

from __future__ import annotations

from functools import cache

from penstock.graph.state.key_groups import HASH_BITS, SLOT_BITS, SLOTS, is_power_of_two
from penstock.graph.types import quote

KEY_HASH = "__key_hash"
STEERING = "__steering"
_MASK = 0xFFFFFFFF
_C1, _C2, _FIVE, _ADDED = 0xCC9E2D51, 0x1B873593, 5, 0xE6546B64
"""What Murmur3 multiplies with and adds."""


def key_hash_sql(keys: tuple[str, ...]) -> str:
    """The key hash of a record, as SQL; `kernels/hashing/key_hash.py` computes the same."""
    if not keys:
        return f"0L as {KEY_HASH}"
    columns = _columns(keys)
    rest = f"xxhash64({columns}) & {(1 << HASH_BITS) - 1}L"
    return f"shiftleft({_slot_sql(columns)} - {SLOTS // 2}L, {HASH_BITS}) | ({rest}) as {KEY_HASH}"


def task_sql(keys: tuple[str, ...], tasks: int, groups: int) -> str:
    """The number of the task that owns a record, as SQL, where that is not a power of two."""
    bits = groups.bit_length() - 1
    group = f"shiftright({_slot_sql(_columns(keys))}, {SLOT_BITS - bits})"
    return f"cast(shiftright(({group} + 1) * {tasks}L - 1, {bits}) as int)"


def needs_steering(tasks: int) -> bool:
    """Whether Spark's own hash partitioning does not send records to the tasks that own them."""
    return not is_power_of_two(tasks)


def steering_sql(keys: tuple[str, ...], tasks: int, groups: int) -> str:
    """The steering column of a record, as SQL: `hash(keys, steering) mod tasks` is the number of the task that owns it.

    Every step of Murmur3 can be undone, so the number that leads from the hash of the keys to that of a task can be computed.
    """
    table = f"array({', '.join(f'{wanted}L' for wanted in _wanted(tasks))})"
    mixed = f"(element_at({table}, {task_sql(keys, tasks, groups)} + 1) ^ (hash({_columns(keys)}) & {_MASK}L))"
    turned = _product(mixed, _inverse(_C2))
    number = _product(f"((shiftright({turned}, 15) | shiftleft({turned}, 17)) & {_MASK}L)", _inverse(_C1))
    return f"cast(({number} ^ {1 << 31}L) - {1 << 31}L as int) as {STEERING}"


def _columns(keys: tuple[str, ...]) -> str:
    return ", ".join(map(quote, keys))


def _slot_sql(columns: str) -> str:
    """The slot of a key: the last 15 bits of `hash` in reverse, a byte at a time by a product, a mask and a remainder."""
    low, high = f"hash({columns}) & 255", f"shiftright(hash({columns}), 8) & 127"
    first, second = (f"((({part}) * 8623620610L) & 1136090292240L) % 1023L" for part in (low, high))
    return f"(shiftleft({first}, 7) | shiftright({second}, 1))"


def _product(number: str, factor: int) -> str:
    """A product modulo 2^32, as SQL that never overflows."""
    high = f"shiftleft({number} * {factor >> 16}L & 65535L, 16)"
    return f"(({high} + {number} * {factor & 65535}L) & {_MASK}L)"


@cache
def _wanted(tasks: int) -> tuple[int, ...]:
    """For each task what the mixed steering number and the hash of the keys have to differ by, so that the hash of both is the task."""
    return tuple(_rotated((_unfinished(task) - _ADDED) * _inverse(_FIVE) & _MASK, 13) for task in range(tasks))


def _unfinished(finished: int) -> int:
    """The number from which the last steps of Murmur3, for four bytes, make this one."""
    made = _unshifted(finished, 16) * _inverse(0xC2B2AE35) & _MASK
    made = _unshifted(made, 13) * _inverse(0x85EBCA6B) & _MASK
    return _unshifted(made, 16) ^ 4


def _unshifted(number: int, by: int) -> int:
    """The number that makes this one when it is combined with itself, shifted to the right."""
    return number ^ number >> by ^ (number >> 2 * by if 2 * by < 32 else 0)


def _rotated(number: int, by: int) -> int:
    return (number >> by | number << (32 - by)) & _MASK


def _inverse(factor: int) -> int:
    return pow(factor, -1, 1 << 32)
