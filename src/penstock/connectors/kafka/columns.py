"""What a stream becomes on its way to Kafka: the columns key, value, and where asked for topic and headers, as Spark makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.connectors.base import SinkPlace
from penstock.errors import SchemaError
from penstock.graph import types as t
from penstock.graph.endpoints.kafka import REGISTERED
from penstock.graph.nodes.changes import DELETE, OPERATION
from penstock.graph.types import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def kafka_columns(frame: DataFrame, place: SinkPlace) -> DataFrame:
    """The records as Kafka takes them."""
    columns = [f"{_key(place)} as key", *_beside(place)]
    if place.options["format"] not in REGISTERED:
        return frame.selectExpr(columns[0], f"{_unless_gone(place, _value(place))} as value", *columns[1:])
    from penstock.connectors.kafka.wire import encoded

    whole = f"struct({', '.join(map(quote, body_fields(place)))})"
    return encoded(frame.selectExpr(columns[0], f"{_unless_gone(place, whole)} as value", *columns[1:]), place)


def _unless_gone(place: SinkPlace, value: str) -> str:
    """A value; null for a row that is gone from a table, which deletes the key where the topic is compacted."""
    return f"if({OPERATION} = '{DELETE}', null, {value})" if OPERATION in place.schema else value


def _beside(place: SinkPlace) -> list[str]:
    named = {"topic": place.options.get("topic_field"), "headers": place.options.get("headers")}
    return [f"{quote(field)} as {name}" for name, field in named.items() if field]


def _key(place: SinkPlace) -> str:
    names = key_fields(place)
    if not names:
        return "cast(null as binary)"
    if len(names) == 1:
        plain = quote(names[0]) if _type(place, names[0]) == t.BINARY else f"cast({quote(names[0])} as string)"
        return f"cast({plain} as binary)"
    return f"cast(to_json(struct({', '.join(map(quote, names))}), map('ignoreNullFields', 'false')) as binary)"


def key_fields(place: SinkPlace) -> tuple[str, ...]:
    """The fields that make the key: those the user named, or the key of a stream of updates."""
    given = place.options.get("key")
    return tuple(given) if given is not None else tuple(place.updates or ())


def body_fields(place: SinkPlace) -> tuple[str, ...]:
    """The fields that make the value: all but those that say where a record goes and what its headers are."""
    aside = {place.options.get("topic_field"), place.options.get("headers"), OPERATION}
    return tuple(n for n in place.schema.names if n not in aside)


def _value(place: SinkPlace) -> str:
    if place.options["format"] == "json":
        body = ", ".join(map(quote, body_fields(place)))
        return f"cast(to_json(struct({body}), map('ignoreNullFields', 'false')) as binary)"
    name = value_field(place)
    return quote(name) if _type(place, name) == t.BINARY else f"cast(cast({quote(name)} as string) as binary)"


def value_field(place: SinkPlace) -> str:
    """The one field that is the value in the formats text and raw."""
    rest = [n for n in body_fields(place) if n not in key_fields(place)]
    if "value" in rest:
        return "value"
    if len(rest) != 1:
        raise SchemaError(
            f"sink {place.sink!r}: format={place.options['format']!r} writes the field 'value', or the only one beside the key; the stream "
            f"has ({place.schema}). Name one 'value', or take format='json'"
        )
    return rest[0]


def _type(place: SinkPlace, name: str) -> t.DataType:
    return place.schema.field(name).type


def check_columns(place: SinkPlace) -> None:
    """Every field that the options name must be there, and be of a type that Kafka takes."""
    for name in (*key_fields(place), place.options.get("topic_field"), place.options.get("headers")):
        if name:
            place.schema.field(name)
    if OPERATION in place.schema and not key_fields(place):
        raise SchemaError(
            f"sink {place.sink!r}: its table has one row and no key, so a record cannot say that the row is gone; give key='a field'"
        )
    if place.options["format"] in ("text", "raw"):
        kind = _type(place, value_field(place))
        wanted = t.BINARY if place.options["format"] == "raw" else t.STRING
        if kind not in (t.BINARY, t.STRING):
            raise SchemaError(
                f"sink {place.sink!r}: format={place.options['format']!r} writes {wanted} as it is; {value_field(place)!r} is {kind}"
            )
