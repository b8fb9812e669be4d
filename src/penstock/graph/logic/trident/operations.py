"""Functions and filters of Trident: what looks at one tuple at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from penstock.errors import FlowError
from penstock.graph.row import row_class

Values = tuple[Any, ...]


class Collector:
    """Takes what an operation emits.

    >>> from penstock.trident import Collector
    >>> made = Collector()
    >>> made.emit("a"), made.emit(("b", 2)), made.values
    (None, None, [('a',), ('b', 2)])
    """

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: list[Values] = []

    def emit(self, values: object) -> None:
        """One more tuple; a bare value stands for a tuple of one field.

        Args:
            values: the values of the tuple.
        """
        self.values.append(as_values(values))

    def taken(self) -> list[Values]:
        """What was emitted, which is empty again afterwards.

        Returns:
            The tuples.
        """
        made, self.values = self.values, []
        return made


def as_values(given: object) -> Values:
    """A tuple of values from what a user emits: a tuple, a list, or a bare value."""
    return tuple(given) if isinstance(given, tuple | list) else (given,)


@dataclass(frozen=True)
class Picked:
    """Picks fields of a row, as a row of their own."""

    names: tuple[str, ...]
    indexes: tuple[int, ...]

    @staticmethod
    def of(schema: Iterable[str], names: Iterable[str]) -> Picked:
        """The fields `names` of rows with the fields `schema`."""
        given, wanted = tuple(schema), tuple(names)
        return Picked(wanted, tuple(map(given.index, wanted)))

    def values(self, row: Any) -> Values:
        """The fields as a plain tuple."""
        return tuple([row[index] for index in self.indexes])

    def __call__(self, row: Any) -> Any:
        """The fields as a row."""
        return tuple.__new__(row_class(self.names), self.values(row))


@dataclass(frozen=True)
class OperationContext:
    """Where an operation runs: the number of the partition, and how many there are.

    Args:
        partition: the number of the partition.
        partitions: how many there are.

    >>> from penstock.trident import OperationContext
    >>> OperationContext(1, 4).partition
    1
    """

    partition: int = 0
    partitions: int = 1


class Operation:
    """What all operations have in common: they may prepare themselves, and clean up."""

    def prepare(self, conf: dict[str, Any], context: OperationContext) -> None:
        """Called once for each instance, before its first tuple.

        Args:
            conf: the configuration; empty.
            context: the number of the partition, and how many there are.
        """

    def cleanup(self) -> None:
        """Called when a partition ends that the instance worked for. One that works before tuples were first dealt out, or by key, just ends."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != _PREPARED}


_PREPARED = "_is_prepared"


def prepared(operation: Any, context: OperationContext | None = None) -> Any:
    """The operation, which is prepared before its first use; a copy is another instance.

    >>> class Noted(Filter):
    ...     def prepare(self, conf, context):
    ...         print(context)
    >>> _ = prepared(prepared(Noted()))
    OperationContext(partition=0, partitions=1)
    """
    if isinstance(operation, Operation) and _PREPARED not in vars(operation):
        vars(operation)[_PREPARED] = True
        operation.prepare({}, context or OperationContext())
    return operation


def clean_up(operation: Any) -> None:
    """Tells an operation that its partition ends."""
    if isinstance(operation, Operation) and _PREPARED in vars(operation):
        operation.cleanup()


class Function(Operation):
    """Emits any number of values for a tuple; they are appended to its fields. One that emits nothing drops the tuple.

    >>> from penstock.trident import Function, Split
    >>> class Split(Function):
    ...     def execute(self, tup, collector):
    ...         for word in tup.sentence.split():
    ...             collector.emit(word)
    """

    def execute(self, tup: Any, collector: Collector) -> None:
        """Called for each tuple. You must define it.

        Args:
            tup: the input fields of the tuple.
            collector: takes what is emitted.

        Raises:
            NotImplementedError: the class does not define it.
        """
        raise NotImplementedError


class Filter(Operation):
    """Says which tuples stay.

    >>> from penstock.trident import Filter
    >>> class Long(Filter):
    ...     def is_keep(self, tup):
    ...         return len(tup[0]) > 3
    """

    def is_keep(self, tup: Any) -> bool:
        """Whether a tuple stays. You must define it.

        Args:
            tup: the input fields of the tuple.

        Returns:
            True where it stays.

        Raises:
            NotImplementedError: the class does not define it.
        """
        raise NotImplementedError


class FilterNull(Filter):
    """Keeps tuples none of whose input fields is null.

    >>> from penstock.trident import FilterNull
    >>> FilterNull().is_keep(("a", None))
    False
    """

    def is_keep(self, tup: Any) -> bool:
        """Whether no field is null."""
        return all(value is not None for value in tup)


class Split(Function):
    """Splits a text at blanks, a tuple for each word.

    >>> from penstock.trident import Collector, Split
    >>> made = Collector()
    >>> Split().execute(("to be",), made), made.values
    (None, [('to',), ('be',)])
    """

    def execute(self, tup: Any, collector: Collector) -> None:
        """A tuple for each word."""
        for word in tup[0].split():
            collector.emit(word)


class ExpandList(Function):
    """A tuple for each item of a list; null and an empty list drop the tuple.

    >>> from penstock.trident import Collector, ExpandList
    >>> made = Collector()
    >>> ExpandList().execute(([1, 2],), made), made.values
    (None, [(1,), (2,)])
    """

    def execute(self, tup: Any, collector: Collector) -> None:
        """A tuple for each item."""
        for item in tup[0] or ():
            collector.emit(item)


@dataclass
class _Called(Function):
    """A plain function as a Trident function: it returns or yields what is appended."""

    function: Callable[..., Iterable[object] | None]

    def execute(self, tup: Any, collector: Collector) -> None:
        for made in self.function(tup) or ():
            collector.emit(made)


@dataclass
class _Asked(Filter):
    """A plain function as a filter."""

    function: Callable[..., object]

    def is_keep(self, tup: Any) -> bool:
        return bool(self.function(tup))


def operation_of(given: object, *, appends: bool) -> Function | Filter:
    """The operation of an `each`: an instance, a class, or a plain function, which is a filter where no fields are appended.

    Raises:
        FlowError: it is none, or it does not go with the fields.
    """
    made = given() if isinstance(given, type) else given
    if not isinstance(made, Operation) and callable(made):
        made = _Called(made) if appends else _Asked(made)
    if isinstance(made, Function) and not appends:
        raise FlowError(f"expected the fields that {_name(made)} appends, such as 'word string', got none")
    if isinstance(made, Filter) and appends:
        raise FlowError(f"expected a function, which appends fields, got the filter {_name(made)}")
    if not isinstance(made, Function | Filter):
        raise FlowError(f"expected a Function, a Filter or a plain function, got {given!r}")
    return made


def _name(made: object) -> str:
    return type(made).__qualname__
