"""Functions of arrays, maps and structs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.graph import types as t
from penstock.graph.expr.coerce import TypedExpr
from penstock.kernels.expr.values import Value, sort_key

Run = Callable[[Any], Any]


def _item_key(node: TypedExpr) -> Value:
    """What makes items of the first argument comparable; null is a key of its own."""
    kind = node.args[0].type
    assert isinstance(kind, t.Array)
    key = sort_key(kind.item)
    if key is None:
        return lambda value: value
    return lambda value: None if value is None else key(value)


def _array(node: TypedExpr, runs: list[Run]) -> Run:
    return lambda row: [part(row) for part in runs]


def _struct(node: TypedExpr, runs: list[Run]) -> Run:
    assert isinstance(node.type, t.Struct)
    parts = list(zip([f.name for f in node.type.fields], runs, strict=True))
    return lambda row: {name: part(row) for name, part in parts}


def _map(node: TypedExpr, runs: list[Run]) -> Run:
    pairs = list(zip(runs[::2], runs[1::2], strict=True))

    def run(row: Sequence[Any]) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for key, value in pairs:
            name = key(row)
            if name is None or name in made:
                raise ValueError(f"a map's keys must differ and be there, got {name!r}")
            made[name] = value(row)
        return made

    return run


def _contains(node: TypedExpr) -> Callable[..., bool | None]:
    key = _item_key(node)

    def contains(items: list[Any], wanted: object) -> bool | None:
        sought = key(wanted)
        if any(item is not None and key(item) == sought for item in items):
            return True
        return None if None in items else False

    return contains


def _position(node: TypedExpr) -> Callable[..., int]:
    key = _item_key(node)

    def position(items: list[Any], wanted: object) -> int:
        sought = key(wanted)
        return next((at for at, item in enumerate(items, 1) if item is not None and key(item) == sought), 0)

    return position


def _distinct(node: TypedExpr) -> Callable[..., list[Any]]:
    key = _item_key(node)
    return lambda items: _unique(items, key)


def _unique(items: list[Any], key: Value, without: frozenset[Any] = frozenset()) -> list[Any]:
    found: dict[Any, Any] = {}
    for item in items:
        name = key(item)
        if name not in without:
            found.setdefault(name, item + 0.0 if isinstance(item, float) else item)
    return list(found.values())


def _union(node: TypedExpr) -> Callable[..., list[Any]]:
    key = _item_key(node)
    return lambda left, right: _unique([*left, *right], key)


def _except(node: TypedExpr) -> Callable[..., list[Any]]:
    key = _item_key(node)
    return lambda left, right: _unique(left, key, frozenset(map(key, right)))


def _intersect(node: TypedExpr) -> Callable[..., list[Any]]:
    key = _item_key(node)

    def intersect(left: list[Any], right: list[Any]) -> list[Any]:
        both = set(map(key, right))
        return _unique([item for item in left if key(item) in both], key)

    return intersect


def _overlap(node: TypedExpr) -> Callable[..., bool | None]:
    key = _item_key(node)

    def overlap(left: list[Any], right: list[Any]) -> bool | None:
        shared = {key(v) for v in left if v is not None} & {key(v) for v in right if v is not None}
        if shared:
            return True
        return None if left and right and (None in left or None in right) else False

    return overlap


def _sorted(node: TypedExpr) -> Callable[..., list[Any]]:
    key = _item_key(node)

    def sort(items: list[Any], upwards: bool = True) -> list[Any]:
        there = sorted((item for item in items if item is not None), key=key, reverse=not upwards)
        nulls = [None] * (len(items) - len(there))
        return [*nulls, *there] if upwards else [*there, *nulls]

    return sort


def _removed(node: TypedExpr) -> Callable[..., list[Any]]:
    key = _item_key(node)

    def remove(items: list[Any], gone: object) -> list[Any]:
        sought = key(gone)
        return [item for item in items if item is None or key(item) != sought]

    return remove


def _extreme(pick: Callable[..., Any]) -> Callable[[TypedExpr], Callable[..., Any]]:
    def make(node: TypedExpr) -> Callable[..., Any]:
        key = _item_key(node)
        return lambda items: pick((item for item in items if item is not None), key=key, default=None)

    return make


def _element_at(node: TypedExpr) -> Callable[..., Any]:
    return dict.get if isinstance(node.args[0].type, t.Map) else _at


def _at(items: list[Any], index: int) -> object:
    if index == 0:
        raise IndexError("the index 0 is invalid; element_at counts from 1, or from -1 backwards")
    if abs(index) > len(items):
        raise IndexError(f"the index {index} is out of bounds; the array has {len(items)} elements, counted from 1")
    return items[index - 1 if index > 0 else index]


def _slice(items: list[Any], start: int, length: int) -> list[Any]:
    if start == 0 or length < 0:
        raise ValueError("slice counts from 1 (or from -1 backwards), and its length is not negative")
    begin = start - 1 if start > 0 else len(items) + start
    return items[begin : begin + length] if 0 <= begin < len(items) else []


def _join(items: list[str | None], mark: str, for_null: str | None = None) -> str:
    return mark.join(text for item in items if (text := for_null if item is None else item) is not None)


def _flatten(items: list[list[Any] | None]) -> list[Any] | None:
    if any(item is None for item in items):
        return None
    return [inner for item in items if item is not None for inner in item]


def _from_arrays(keys: list[Any], values: list[Any]) -> dict[Any, Any]:
    if len(keys) != len(values) or None in keys or len(set(keys)) != len(keys):
        raise ValueError(f"a map needs as many values as keys, which differ and are there, got {keys!r} and {values!r}")
    return dict(zip(keys, values, strict=True))


PLAIN: dict[str, Callable[..., Any]] = {
    "array_join": _join,
    "flatten": _flatten,
    "map_contains_key": lambda given, key: key in given,
    "map_entries": lambda given: [{"key": key, "value": value} for key, value in given.items()],
    "map_from_arrays": _from_arrays,
    "map_keys": list,
    "map_values": lambda given: list(given.values()),
    "size": len,
    "slice": _slice,
}

TYPED: dict[str, Callable[[TypedExpr], Callable[..., Any]]] = {
    "array_contains": _contains,
    "array_distinct": _distinct,
    "array_except": _except,
    "array_intersect": _intersect,
    "array_max": _extreme(max),
    "array_min": _extreme(min),
    "array_position": _position,
    "array_remove": _removed,
    "array_union": _union,
    "arrays_overlap": _overlap,
    "element_at": _element_at,
    "sort_array": _sorted,
}

LAZY: dict[str, Callable[[TypedExpr, list[Run]], Run]] = {
    "array": _array,
    "map": _map,
    "named_struct": _struct,
    "struct": _struct,
}
