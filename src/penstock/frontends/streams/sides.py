"""Two streams that are to be joined: checked, and what comes of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.errors import FlowError, SchemaError
from penstock.graph import types as t
from penstock.graph.caller import user_line
from penstock.graph.nodes import LATE, LATE_RIGHT, AsRecords, Output, Timed
from penstock.graph.schema import Schema

if TYPE_CHECKING:
    from penstock.frontends.streams.stream import Stream

HOWS = ("inner", "left", "right", "full")


class Both:
    """Two streams that are to be joined, checked."""

    def __init__(self, name: str, left: Stream, right: Any, on: Any, how: str, prefix: str) -> None:
        from penstock.frontends.streams.stream import Stream

        if not isinstance(right, Stream):
            raise FlowError(f"a join is with a stream, or with a static table such as ps.files(...), got {right!r}")
        left._need_stream(right)
        self.name, self.left, self.right, self.how, self.prefix = name, left, right, how, prefix
        if how not in HOWS:
            raise FlowError(f"how is one of {', '.join(HOWS)}, got {how!r}")
        for side in (left, right):
            side._need_records(name, "join")
        self.on = pairs_of(on)
        self._check_keys()
        self.timed = (timed_by(left, "left"), timed_by(right, "right"))

    def _check_keys(self) -> None:
        for one, other in self.on:
            mine, theirs = self.left.schema.field(one), self.right.schema.field(other)
            check_key(mine)
            if str(mine.type) != str(theirs.type):
                raise SchemaError(
                    f"{one!r} is {mine.type} on the left and {other!r} is {theirs.type} on the right; cast one"
                )

    def fields(self) -> list[tuple[t.Field, tuple[str, str]]]:
        """The fields of the result, each with the fields of the left and the right that it is taken from."""
        shared = {other: one for one, other in self.on if one == other}
        left_gone, right_gone = self.how in ("right", "full"), self.how in ("left", "full")
        made = [
            (_maybe(f, left_gone and f.name not in shared), (f.name, f.name if f.name in shared else ""))
            for f in self.left.schema.fields
        ]
        for field in self.right.schema.fields:
            if field.name not in shared:
                named = replace(field, name=f"{self.prefix}{field.name}")
                made.append((_maybe(named, right_gone), ("", field.name)))
        return made

    def schema(self, before: Iterable[t.Field] = (), after: Iterable[t.Field] = ()) -> Schema:
        """The schema of the result, with fields of the join's own around it."""
        made = [*before, *(field for field, _ in self.fields()), *after]
        seen: set[str] = set()
        for field in made:
            if field.name.lower() in seen:
                raise SchemaError(
                    f"{field.name!r} would stand twice in the result; give prefix='right_', which is put before the fields "
                    f"of {self.right.port.step!r}, or rename one with select first"
                )
            seen.add(field.name.lower())
        return Schema(tuple(made))

    def time(self, into: str) -> Timed | None:
        """Where the event time of the result is: on the side that is always there; of a full join in a field of its own."""
        if into:
            return Timed(into)
        if self.how != "right":
            return self.timed[0] if self.how != "full" else None
        names = {source[1]: field.name for field, source in self.fields() if source[1]}
        return replace(self.timed[1], column=names[self.timed[1].column])

    def settings(self) -> tuple[Any, ...]:
        """What every join of streams is told."""
        keys, others = zip(*self.on, strict=True)
        return keys, others, self.how, self.timed, tuple(source for _, source in self.fields())

    def ports(self) -> tuple[Any, Any]:
        """The streams; one that is joined with itself comes in by a second way."""
        if self.left.port != self.right.port:
            return self.left.port, self.right.port
        known = self.right.flow.output(self.right.port)
        again = AsRecords(f"{self.name}.right", (self.right.port,), (replace(known, name="out"),), line=user_line())
        return self.left.port, self.left.flow.add(again).port

    def outputs(self, main: Output) -> tuple[Output, ...]:
        """The result, and the late records of each side."""
        left, right = self.timed
        late = Output(self.left.schema, LATE, event_time=left)
        return main, late, Output(self.right.schema, LATE_RIGHT, event_time=right)


def check_key(field: t.Field) -> None:
    """Refuses what cannot be a key."""
    if field.type in (t.FLOAT, t.DOUBLE) or isinstance(field.type, t.Map | t.Array | t.Struct):
        raise SchemaError(
            f"a key is a plain value; {field.name!r} is {field.type}. Pick a part of it, or cast it with with_columns before"
        )


def _maybe(field: t.Field, missing: bool) -> t.Field:
    return replace(field, nullable=True) if missing else field


def timed_by(stream: Stream, side: str) -> Timed:
    """Where the event time of a stream is, which must have one."""
    found = stream.event_time_of
    if found is None:
        raise FlowError(
            f"both streams of a join need event time; {stream.port} on the {side} has none. Give it some before: "
            f".event_time('{stream.port.step}.time', 'ts', lateness='10s')"
        )
    return found


def pairs_of(on: Any) -> tuple[tuple[str, str], ...]:
    """The fields of the left and the right that must be equal.

    >>> pairs_of("user"), pairs_of(["user", ("id", "order_id")]), pairs_of({"id": "order_id"})
    ((('user', 'user'),), (('user', 'user'), ('id', 'order_id')), (('id', 'order_id'),))
    """
    given = [on] if isinstance(on, str) else list(on.items() if isinstance(on, Mapping) else on)
    made = tuple((each, each) if isinstance(each, str) else tuple(each) for each in given)
    if not made or any(len(pair) != 2 for pair in made):
        raise FlowError(f"on is a field, a list of fields, or pairs of them such as {{'id': 'order_id'}}, got {on!r}")
    return made
