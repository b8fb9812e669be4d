"""Rules for times and for values with parts: arrays, maps, structs."""

from __future__ import annotations

from penstock.graph import types as t
from penstock.graph.expr.coerce import TypedExpr, cast_to, is_simple, tight_type
from penstock.graph.expr.rules import Args, Misfit, Rule, fit, meet_all, ordered

_MOMENTS = (t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ)


def moment_to(kind: t.DataType) -> Rule:
    """to_date and to_timestamp: a text, a date or a timestamp, and perhaps a pattern for the text."""

    def rule(args: Args) -> tuple[Args, t.DataType]:
        if len(args) == 2:
            return _patterned(args, kind)
        allowed = (*_MOMENTS, t.STRING, t.NULL) if kind == t.DATE else (*_MOMENTS, t.STRING, t.NULL, *_SECONDS)
        if args[0].type not in allowed:
            raise Misfit(f"a text, a date or a timestamp must come, got {args[0].type}")
        return (cast_to(args[0], kind),), kind

    return rule


_SECONDS = (*t.INTEGERS, t.FLOAT, t.DOUBLE)


def _patterned(args: Args, kind: t.DataType) -> tuple[Args, t.DataType]:
    if args[0].type not in (t.STRING, t.NULL):
        raise Misfit(f"a pattern needs a text to read, got {args[0].type}")
    return (fit(args, 0, t.STRING), fit(args, 1, t.STRING)), kind


def unix_seconds(args: Args) -> tuple[Args, t.DataType]:
    """unix_timestamp: a timestamp, a date, or a text with its pattern."""
    if args[0].type in _MOMENTS:
        return (cast_to(args[0], t.TIMESTAMP),), t.BIGINT
    pattern = args[1] if len(args) == 2 else TypedExpr("literal", t.STRING, (), "yyyy-MM-dd HH:mm:ss")
    return _patterned((args[0], pattern), t.BIGINT)


def from_seconds(args: Args) -> tuple[Args, t.DataType]:
    """timestamp_seconds: any number."""
    if not (t.is_numeric(args[0].type) or args[0].type == t.NULL):
        raise Misfit(f"a number must come, got {args[0].type}; cast it")
    return args, t.TIMESTAMP


def whole_to(returns: t.DataType) -> Rule:
    """A whole number."""

    def rule(args: Args) -> tuple[Args, t.DataType]:
        if args[0].type not in (*t.INTEGERS, t.NULL):
            raise Misfit(f"expected a whole number, got {args[0].type}; cast it")
        return (cast_to(args[0], t.BIGINT),), returns

    return rule


def exactly(kind: t.DataType, returns: t.DataType) -> Rule:
    """One argument of this type; nothing is cast unasked."""

    def rule(args: Args) -> tuple[Args, t.DataType]:
        return (strictly(args, 0, kind),), returns

    return rule


def strictly(args: Args, index: int, kind: t.DataType) -> TypedExpr:
    """The argument at an index (from 0), which must have the type already."""
    if args[index].type not in (kind, t.NULL):
        raise Misfit(f"argument {index + 1} must be {kind}, got {args[index].type}; cast it")
    return cast_to(args[index], kind)


def without_item(args: Args) -> tuple[Args, t.DataType]:
    """array_remove: an array and an item, which go by the array's type."""
    given, _ = holds(t.BOOLEAN)(args)
    return given, given[0].type


def days_moved(args: Args) -> tuple[Args, t.DataType]:
    """date_add, date_sub and add_months: a date and a number of days or months."""
    if args[1].type not in (t.TINYINT, t.SMALLINT, t.INT, t.STRING, t.NULL):
        raise Misfit(f"argument 2 must be int, got {args[1].type}; cast it")
    return (fit(args, 0, t.DATE), fit(args, 1, t.INT)), t.DATE


def array_at(args: Args, index: int = 0) -> t.Array:
    """The array type of an argument."""
    kind = args[index].type
    if not isinstance(kind, t.Array):
        raise Misfit(f"argument {index + 1} must be an array, got {kind}")
    return kind


def map_at(args: Args) -> t.Map:
    """The map type of the first argument."""
    kind = args[0].type
    if not isinstance(kind, t.Map):
        raise Misfit(f"argument 1 must be a map, got {kind}")
    return kind


def counted(args: Args) -> tuple[Args, t.DataType]:
    """size: an array or a map."""
    if not isinstance(args[0].type, t.Array | t.Map):
        raise Misfit(f"an array or a map must come, got {args[0].type}")
    return args, t.INT


def array_of(args: Args) -> tuple[Args, t.DataType]:
    """array: items of one type."""
    args, kind = meet_all(args)
    return args, t.Array(kind)


def map_of(args: Args) -> tuple[Args, t.DataType]:
    """map: keys and values in turn."""
    if len(args) % 2:
        raise Misfit("keys and values must come in pairs")
    keys, key = meet_all(args[::2])
    values, value = meet_all(args[1::2])
    if isinstance(key, t.Map):
        raise Misfit("a map cannot be a key")
    return tuple(part for pair in zip(keys, values, strict=True) for part in pair), t.Map(key, value)


def struct_of(args: Args) -> tuple[Args, t.DataType]:
    """named_struct: constant names and values in turn."""
    names = args[::2]
    if len(args) % 2 or any(n.kind != "literal" or n.type != t.STRING for n in names):
        raise Misfit("constant names and values must come in pairs")
    fields = tuple(t.Field(n.value, v.type) for n, v in zip(names, args[1::2], strict=True))
    return args[1::2], t.Struct(fields)


def holds(returns: t.DataType) -> Rule:
    """array_contains: an array and a value of its items' type."""

    def rule(args: Args) -> tuple[Args, t.DataType]:
        item = array_at(args).item
        kind = tight_type(item, args[1].type)
        if kind is None or args[1].type == t.NULL:
            raise Misfit(f"argument 2 must be {item}, got {args[1].type}; cast it")
        ordered(kind)
        return (cast_to(args[0], t.Array(kind)), cast_to(args[1], kind)), returns

    return rule


def position(args: Args) -> tuple[Args, t.DataType]:
    """array_position: an array and a value of its items' type; decimals meet only their own kind."""
    item, sought = array_at(args).item, args[1].type
    if item != sought and (isinstance(item, t.Decimal) or isinstance(sought, t.Decimal)):
        raise Misfit(f"argument 2 must be {item}, got {sought}; cast it")
    return holds(t.BIGINT)(args)


def element(args: Args) -> tuple[Args, t.DataType]:
    """element_at: an array and an index from 1, or a map and a key."""
    if isinstance(args[0].type, t.Map):
        kind = args[0].type
        if tight_type(kind.key, args[1].type) != kind.key:
            raise Misfit(f"the key must be {kind.key}, got {args[1].type}; cast it")
        return (args[0], cast_to(args[1], kind.key)), kind.value
    kind_ = array_at(args)
    if args[1].type not in (t.TINYINT, t.SMALLINT, t.INT):
        raise Misfit(f"the position must be int, got {args[1].type}; cast it")
    return args, kind_.item


def same_array(args: Args) -> tuple[Args, t.DataType]:
    """An array first, and the same array type as the result."""
    ordered(array_at(args).item)
    return args, args[0].type


def sorted_array(args: Args) -> tuple[Args, t.DataType]:
    """sort_array: an array, and whether upwards."""
    ordered(array_at(args).item)
    return (args[0], *(strictly(args, i, t.BOOLEAN) for i in range(1, len(args)))), args[0].type


def sliced(args: Args) -> tuple[Args, t.DataType]:
    """slice: an array, an index from 1 and a length."""
    array_at(args)
    return (args[0], fit(args, 1, t.INT), fit(args, 2, t.INT)), args[0].type


def two_arrays(args: Args) -> tuple[Args, t.DataType]:
    """array_union and its like: two arrays of one type."""
    ordered(array_at(args).item)
    array_at(args, 1)
    return meet_all(args)


def overlap(args: Args) -> tuple[Args, t.DataType]:
    """arrays_overlap: two arrays of one type, to a truth value."""
    return two_arrays(args)[0], t.BOOLEAN


def item_of(args: Args) -> tuple[Args, t.DataType]:
    """array_min and array_max: an item of the array."""
    return args, ordered(array_at(args).item)


def flat(args: Args) -> tuple[Args, t.DataType]:
    """flatten: an array of arrays."""
    inner = array_at(args).item
    if not isinstance(inner, t.Array):
        raise Misfit(f"an array of arrays must come, got {args[0].type}")
    return args, inner


def array_text(args: Args) -> tuple[Args, t.DataType]:
    """array_join: an array as texts, a separator, and perhaps a text for nulls."""
    if not is_simple(array_at(args).item):
        raise Misfit(f"argument 1 must be array<string>, got {args[0].type}; cast it")
    texts = cast_to(args[0], t.Array(t.STRING))
    return (texts, *(strictly(args, i, t.STRING) for i in range(1, len(args)))), t.STRING


def keys(args: Args) -> tuple[Args, t.DataType]:
    """map_keys."""
    return args, t.Array(map_at(args).key)


def values(args: Args) -> tuple[Args, t.DataType]:
    """map_values."""
    return args, t.Array(map_at(args).value)


def has_key(args: Args) -> tuple[Args, t.DataType]:
    """map_contains_key."""
    kind = map_at(args)
    if tight_type(kind.key, args[1].type) != kind.key:
        raise Misfit(f"the key must be {kind.key}, got {args[1].type}; cast it")
    return (args[0], cast_to(args[1], kind.key)), t.BOOLEAN


def entries(args: Args) -> tuple[Args, t.DataType]:
    """map_entries."""
    kind = map_at(args)
    return args, t.Array(t.Struct((t.Field("key", kind.key), t.Field("value", kind.value))))


def paired(args: Args) -> tuple[Args, t.DataType]:
    """map_from_arrays."""
    keys_, values_ = array_at(args), args[1].type
    if not isinstance(values_, t.Array):
        raise Misfit(f"an array must come second, got {values_}")
    return args, t.Map(keys_.item, values_.item)


def spelled(args: Args) -> tuple[Args, t.DataType]:
    """json_string: what JSON has, and arrays, structs and maps of it."""
    odd = _odd_in_json(args[0].type)
    if odd is not None:
        raise Misfit(f"JSON has no {odd}; cast it to string" if odd != t.FLOAT else "cast float to double")
    return args, t.STRING


def _odd_in_json(kind: t.DataType) -> t.DataType | None:
    """A type inside of another that JSON does not have."""
    if isinstance(kind, t.Array):
        return _odd_in_json(kind.item)
    if isinstance(kind, t.Map):
        return _odd_in_json(kind.value) if kind.key == t.STRING else kind.key
    if isinstance(kind, t.Struct):
        return next((odd for f in kind.fields if (odd := _odd_in_json(f.type)) is not None), None)
    known = isinstance(kind, t.Decimal) or kind in (*t.INTEGERS, t.DOUBLE, t.STRING, t.BOOLEAN, t.NULL)
    return None if known else kind
