"""The functions and operators Penstock knows: one table, each with its arity and its result type.

>>> FUNCTIONS["char_length"].name
'length'
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.graph import types as t
from penstock.graph.expr import rules as r
from penstock.graph.expr import rules_nested as n
from penstock.graph.expr.rules import Misfit, Rule

__all__ = ["AGGREGATES", "ALIASES", "FUNCTIONS", "Function", "Misfit"]

_B, _I, _L, _D, _S = t.BOOLEAN, t.INT, t.BIGINT, t.DOUBLE, t.STRING


@dataclass(frozen=True)
class Function:
    """A function: its own name (not an alias), how many arguments it takes, and its rule."""

    name: str
    least: int
    most: int | None
    rule: Rule


_TABLE = (
    # operators
    *(Function(op, 2, 2, r.arithmetic(op)) for op in ("+", "-", "*", "/", "%", "pmod")),
    Function("div", 2, 2, r.whole_division),
    Function("negative", 1, 1, r.number),
    *(Function(op, 2, 2, r.compared) for op in ("=", "<>", "<", "<=", ">", ">=", "<=>")),
    Function("in", 2, None, r.compared),
    Function("and", 2, 2, r.logical),
    Function("or", 2, 2, r.logical),
    Function("not", 1, 1, r.logical),
    Function("like", 2, 2, r.takes(_S, returns=_B)),
    Function("ilike", 2, 2, r.takes(_S, returns=_B)),
    Function("rlike", 2, 2, r.takes(_S, returns=_B)),
    # choice and nulls
    Function("coalesce", 1, None, r.alike),
    Function("if", 3, 3, r.chosen),
    Function("isnan", 1, 1, r.takes(_D, returns=_B)),
    Function("isnotnull", 1, 1, r.anything(_B)),
    Function("isnull", 1, 1, r.anything(_B)),
    Function("nullif", 2, 2, r.first),
    Function("nvl", 2, 2, r.alike),
    Function("nvl2", 3, 3, r.picked),
    Function("greatest", 2, None, r.extreme),
    Function("least", 2, None, r.extreme),
    # text
    Function("ascii", 1, 1, r.takes(_S, returns=_I)),
    Function("base64", 1, 1, r.digest(_S)),
    Function("chr", 1, 1, r.takes(_L, returns=_S)),
    Function("concat", 1, None, r.joined),
    Function("concat_ws", 1, None, r.joined_with),
    Function("contains", 2, 2, r.takes(_S, returns=_B)),
    Function("crc32", 1, 1, r.digest(_L)),
    Function("endswith", 2, 2, r.takes(_S, returns=_B)),
    Function("get_json_object", 2, 2, r.takes(_S, returns=_S)),
    Function("json_string", 1, 1, n.spelled),
    Function("hex", 1, 1, r.hexed),
    Function("initcap", 1, 1, r.takes(_S, returns=_S)),
    Function("instr", 2, 2, r.takes(_S, returns=_I)),
    Function("left", 2, 2, r.text_or_bytes()),
    Function("length", 1, 1, r.text_or_bytes(_I)),
    Function("locate", 2, 3, r.takes(_S, _S, _I, returns=_I)),
    Function("lower", 1, 1, r.takes(_S, returns=_S)),
    Function("lpad", 2, 3, r.takes(_S, _I, _S, returns=_S)),
    Function("ltrim", 1, 1, r.takes(_S, returns=_S)),
    Function("md5", 1, 1, r.digest(_S)),
    Function("regexp_extract", 2, 3, r.takes(_S, _S, _I, returns=_S)),
    Function("regexp_extract_all", 2, 3, r.takes(_S, _S, _I, returns=t.Array(_S))),
    Function("regexp_replace", 3, 3, r.takes(_S, returns=_S)),
    Function("repeat", 2, 2, r.takes(_S, _I, returns=_S)),
    Function("replace", 2, 3, r.takes(_S, returns=_S)),
    Function("reverse", 1, 1, r.turned),
    Function("right", 2, 2, r.takes(_S, _I, returns=_S)),
    Function("rpad", 2, 3, r.takes(_S, _I, _S, returns=_S)),
    Function("rtrim", 1, 1, r.takes(_S, returns=_S)),
    Function("sha1", 1, 1, r.digest(_S)),
    Function("sha2", 2, 2, r.digest(_S)),
    Function("split", 2, 3, r.takes(_S, _S, _I, returns=t.Array(_S))),
    Function("split_part", 3, 3, r.takes(_S, _S, _I, returns=_S)),
    Function("startswith", 2, 2, r.takes(_S, returns=_B)),
    Function("substring", 2, 3, r.text_or_bytes()),
    Function("substring_index", 3, 3, r.takes(_S, _S, _I, returns=_S)),
    Function("translate", 3, 3, r.takes(_S, returns=_S)),
    Function("trim", 1, 1, r.takes(_S, returns=_S)),
    Function("unbase64", 1, 1, r.takes(_S, returns=t.BINARY)),
    Function("unhex", 1, 1, r.takes(_S, returns=t.BINARY)),
    Function("upper", 1, 1, r.takes(_S, returns=_S)),
    Function("url_decode", 1, 1, r.takes(_S, returns=_S)),
    Function("url_encode", 1, 1, r.takes(_S, returns=_S)),
    # numbers
    Function("abs", 1, 1, r.number),
    Function("bround", 1, 2, r.rounded),
    Function("ceil", 1, 1, r.whole),
    Function("exp", 1, 1, r.takes(_D, returns=_D)),
    Function("floor", 1, 1, r.whole),
    Function("ln", 1, 1, r.takes(_D, returns=_D)),
    Function("log10", 1, 1, r.takes(_D, returns=_D)),
    Function("log2", 1, 1, r.takes(_D, returns=_D)),
    Function("pow", 2, 2, r.takes(_D, returns=_D)),
    Function("round", 1, 2, r.rounded),
    Function("sign", 1, 1, r.takes(_D, returns=_D)),
    Function("sqrt", 1, 1, r.takes(_D, returns=_D)),
    *(Function(name, 1, 1, r.takes(_D, returns=_D)) for name in ("sin", "cos", "tan", "cot", "asin", "acos", "atan")),
    *(Function(name, 1, 1, r.takes(_D, returns=_D)) for name in ("sinh", "cosh", "tanh", "degrees", "radians")),
    Function("atan2", 2, 2, r.takes(_D, returns=_D)),
    Function("bin", 1, 1, r.takes(_L, returns=_S)),
    # times
    Function("add_months", 2, 2, n.days_moved),
    Function("date_add", 2, 2, n.days_moved),
    Function("date_format", 2, 2, r.takes(t.TIMESTAMP, _S, returns=_S)),
    Function("date_sub", 2, 2, n.days_moved),
    Function("date_trunc", 2, 2, r.takes(_S, t.TIMESTAMP, returns=t.TIMESTAMP)),
    Function("datediff", 2, 2, r.takes(t.DATE, returns=_I)),
    Function("day", 1, 1, r.takes(t.DATE, returns=_I)),
    Function("dayofweek", 1, 1, r.takes(t.DATE, returns=_I)),
    Function("dayofyear", 1, 1, r.takes(t.DATE, returns=_I)),
    Function("hour", 1, 1, r.takes(t.TIMESTAMP, returns=_I)),
    Function("last_day", 1, 1, r.takes(t.DATE, returns=t.DATE)),
    Function("minute", 1, 1, r.takes(t.TIMESTAMP, returns=_I)),
    Function("month", 1, 1, r.takes(t.DATE, returns=_I)),
    Function("quarter", 1, 1, r.takes(t.DATE, returns=_I)),
    Function("second", 1, 1, r.takes(t.TIMESTAMP, returns=_I)),
    Function("timestamp_micros", 1, 1, n.whole_to(t.TIMESTAMP)),
    Function("timestamp_millis", 1, 1, n.whole_to(t.TIMESTAMP)),
    Function("timestamp_seconds", 1, 1, n.from_seconds),
    Function("to_date", 1, 2, n.moment_to(t.DATE)),
    Function("to_timestamp", 1, 2, n.moment_to(t.TIMESTAMP)),
    Function("trunc", 2, 2, r.takes(t.DATE, _S, returns=t.DATE)),
    Function("unix_micros", 1, 1, n.exactly(t.TIMESTAMP, returns=_L)),
    Function("unix_millis", 1, 1, n.exactly(t.TIMESTAMP, returns=_L)),
    Function("unix_seconds", 1, 1, n.exactly(t.TIMESTAMP, returns=_L)),
    Function("unix_timestamp", 1, 2, n.unix_seconds),
    Function("weekday", 1, 1, r.takes(t.DATE, returns=_I)),
    Function("weekofyear", 1, 1, r.takes(t.DATE, returns=_I)),
    Function("year", 1, 1, r.takes(t.DATE, returns=_I)),
    # arrays, maps, structs
    Function("array", 0, None, n.array_of),
    Function("array_contains", 2, 2, n.holds(_B)),
    Function("array_distinct", 1, 1, n.same_array),
    Function("array_except", 2, 2, n.two_arrays),
    Function("array_intersect", 2, 2, n.two_arrays),
    Function("array_join", 2, 3, n.array_text),
    Function("array_max", 1, 1, n.item_of),
    Function("array_min", 1, 1, n.item_of),
    Function("array_position", 2, 2, n.position),
    Function("array_remove", 2, 2, n.without_item),
    Function("array_union", 2, 2, n.two_arrays),
    Function("arrays_overlap", 2, 2, n.overlap),
    Function("element_at", 2, 2, n.element),
    Function("flatten", 1, 1, n.flat),
    Function("map", 2, None, n.map_of),
    Function("map_contains_key", 2, 2, n.has_key),
    Function("map_entries", 1, 1, n.entries),
    Function("map_from_arrays", 2, 2, n.paired),
    Function("map_keys", 1, 1, n.keys),
    Function("map_values", 1, 1, n.values),
    Function("named_struct", 2, None, n.struct_of),
    Function("size", 1, 1, n.counted),
    Function("slice", 3, 3, n.sliced),
    Function("sort_array", 1, 2, n.sorted_array),
    Function("struct", 1, None, r.anything(t.NULL)),
)

ALIASES = {
    "mod": "%",
    "ifnull": "nvl",
    "char_length": "length",
    "character_length": "length",
    "len": "length",
    "substr": "substring",
    "position": "locate",
    "lcase": "lower",
    "ucase": "upper",
    "sha": "sha1",
    "regexp": "rlike",
    "regexp_like": "rlike",
    "ceiling": "ceil",
    "log": "ln",
    "power": "pow",
    "signum": "sign",
    "date_diff": "datediff",
    "dateadd": "date_add",
    "dayofmonth": "day",
    "cardinality": "size",
}
"""Other names that Spark has for the same functions."""

FUNCTIONS: dict[str, Function] = {f.name: f for f in _TABLE}
FUNCTIONS.update({alias: FUNCTIONS[name] for alias, name in ALIASES.items()})

_AGGREGATES_TEXT = """
    any any_value approx_count_distinct approx_percentile array_agg avg bit_and bit_or bit_xor bool_and bool_or
    collect_list collect_set corr count count_distinct count_if covar_pop covar_samp every first first_value histogram_numeric
    kurtosis last last_value listagg max max_by mean median min min_by mode percentile percentile_approx skewness
    some std stddev stddev_pop stddev_samp string_agg sum top top_k try_avg try_sum var_pop var_samp variance
"""

AGGREGATES = frozenset(_AGGREGATES_TEXT.split())
"""Functions that need a group of rows."""
