"""What a stream becomes on its way to Kafka: the columns key, value, and where asked for topic and headers, as Spark makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.connectors.base import SinkContext
from penstock.errors import SchemaError
from penstock.graph import types as t
from penstock.graph.endpoints.kafka import REGISTERED
from penstock.graph.nodes.changes import DELETE, OPERATION
from penstock.graph.types import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def kafka_columns(frame: DataFrame, context: SinkContext, *also: str) -> DataFrame:
    """The records as Kafka takes them, with further columns beside them."""
    columns = [f"{_key(context)} as key", *_beside(context), *also]
    if context.options["format"] not in REGISTERED:
        return frame.selectExpr(columns[0], f"{_unless_gone(context, _value(context))} as value", *columns[1:])
    from penstock.connectors.kafka.wire import encoded  # only formats of a registry need it

    whole = f"struct({', '.join(map(quote, body_fields(context)))})"
    return encoded(frame.selectExpr(columns[0], f"{_unless_gone(context, whole)} as value", *columns[1:]), context)


def _unless_gone(context: SinkContext, value: str) -> str:
    """A value; null for a row that is gone from a table, which deletes the key where the topic is compacted."""
    return f"if({OPERATION} = '{DELETE}', null, {value})" if OPERATION in context.schema else value


def _beside(context: SinkContext) -> list[str]:
    named = {"topic": context.options.get("topic_field"), "headers": context.options.get("headers")}
    return [f"{quote(field)} as {name}" for name, field in named.items() if field]


def _key(context: SinkContext) -> str:
    names = key_fields(context)
    if not names:
        return "cast(null as binary)"
    if len(names) == 1:
        plain = quote(names[0]) if _type(context, names[0]) == t.BINARY else f"cast({quote(names[0])} as string)"
        return f"cast({plain} as binary)"
    return f"cast(to_json(struct({', '.join(map(quote, names))}), map('ignoreNullFields', 'false')) as binary)"


def key_fields(context: SinkContext) -> tuple[str, ...]:
    """The fields that make the key: those the user named, or the key of a stream of updates."""
    given = context.options.get("key")
    return tuple(given) if given is not None else tuple(context.updates or ())


def body_fields(context: SinkContext) -> tuple[str, ...]:
    """The fields that make the value: all but those that say where a record goes and what its headers are."""
    aside = {context.options.get("topic_field"), context.options.get("headers"), OPERATION}
    return tuple(n for n in context.schema.names if n not in aside)


def _value(context: SinkContext) -> str:
    if context.options["format"] == "json":
        body = ", ".join(map(quote, body_fields(context)))
        return f"cast(to_json(struct({body}), map('ignoreNullFields', 'false')) as binary)"
    name = value_field(context)
    return quote(name) if _type(context, name) == t.BINARY else f"cast(cast({quote(name)} as string) as binary)"


def value_field(context: SinkContext) -> str:
    """The one field that is the value in the formats text and raw."""
    rest = [n for n in body_fields(context) if n not in key_fields(context)]
    if "value" in rest:
        return "value"
    if len(rest) != 1:
        raise SchemaError(
            f"sink {context.sink!r}: format={context.options['format']!r} writes the field 'value', or the only one beside the key; the stream "
            f"has ({context.schema}). Name one 'value', or take format='json'"
        )
    return rest[0]


def _type(context: SinkContext, name: str) -> t.DataType:
    return context.schema.field(name).type


def check_columns(context: SinkContext) -> None:
    """Every field that the options name must be there, and be of a type that Kafka takes."""
    for name in (*key_fields(context), context.options.get("topic_field"), context.options.get("headers")):
        if name:
            context.schema.field(name)
    if OPERATION in context.schema and not key_fields(context):
        raise SchemaError(
            f"sink {context.sink!r}: its table has one row and no key, so a record cannot say that the row is gone; give key='a field'"
        )
    if context.options["format"] in ("text", "raw"):
        kind = _type(context, value_field(context))
        wanted = t.BINARY if context.options["format"] == "raw" else t.STRING
        if kind not in (t.BINARY, t.STRING):
            raise SchemaError(
                f"sink {context.sink!r}: format={context.options['format']!r} writes {wanted} as it is; {value_field(context)!r} is {kind}"
            )
