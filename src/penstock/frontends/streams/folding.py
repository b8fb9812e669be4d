"""Functions that keep something for each key: `fold` and `update_state`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.errors import SchemaError
from penstock.frontends.streams.naming import names_step
from penstock.graph.caller import user_line
from penstock.graph.logic.capture import check_function
from penstock.graph.logic.process import Updating
from penstock.graph.nodes import Fold, Output
from penstock.graph.schema import Schema, schema_of

if TYPE_CHECKING:
    from penstock.frontends.streams.stream import Stream


class Folding:
    """The functional forms of a stream by key."""

    keys: tuple[str, ...]
    _keyed: Callable[[str], Stream]
    process: Callable[..., Stream]

    @names_step
    def fold(self, name: str, init: Any, function: Callable[[Any, Any], Any], schema: Any) -> Stream:
        """A running value per key: `function(so_far, row)` gives the next, `init` stands before the first record.

        `schema` says what the value looks like: with one field it is a bare value, with several it comes as a row and may be given as
        a tuple or a dict. At the end of a batch each key that changed gives a record: the key fields and the value's.
        """
        check_function(name, function, user_line(), arguments=2)
        stream, value = self._keyed(name), schema_of(schema)
        clash = [n for n in value.names if n in self.keys]
        if clash:
            raise SchemaError(f"step {name!r} ({user_line()}): {clash[0]!r} is a key already; name the value otherwise")
        made = Schema(stream.schema.only(self.keys).fields + value.fields)
        output = Output(made, updates=self.keys)
        return stream.flow.add(Fold(name, (stream.port,), (output,), self.keys, init, function, line=user_line()))

    @names_step
    def update_state(
        self, name: str, function: Callable[[Any, Any], tuple[Any, Any]], schema: Any, *, side: Any = None
    ) -> Stream:
        """Any Python object per key: `function(row, state)` gives what to keep and the records that come out.

        `state` is None before the first record of a key, and whenever the function gives None for it: the key is forgotten then.
        """
        check_function(name, function, user_line(), arguments=2)
        return self.process(name, Updating(function), schema, side=side)
