"""Which task owns a key hash, by the definition: the one among whose slots its slot is."""

from __future__ import annotations

from functools import cache

from penstock.graph.state.key_groups import HASH_BITS, KEY_GROUPS, SLOTS, owned_slots


def slot_of(key_hash: int) -> int:
    return (key_hash >> HASH_BITS) + SLOTS // 2


def owner(key_hash: int, tasks: int, groups: int = KEY_GROUPS) -> int:
    slot = slot_of(key_hash)
    (found,) = [task for begin, end, task in _spans(tasks, groups) if begin <= slot < end]
    return found


@cache
def _spans(tasks: int, groups: int) -> list[tuple[int, int, int]]:
    return [(*owned_slots(task, tasks, groups), task) for task in range(tasks)]
