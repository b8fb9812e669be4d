"""Kernels of the steps that remember nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, get_args

import pyarrow as pa

from penstock.errors import UnknownName, nearest
from penstock.graph.expr import Expr
from penstock.graph.logic.tagged import TaggedRecord
from penstock.graph.nodes import Branch, Explode, Filter, FlatMap, Map, MapBatches, Node, Select, Where, WithColumns
from penstock.graph.schema import Schema
from penstock.kernels.base import Kernel, Out, RecordFailed
from penstock.kernels.expr.arrays import compile_arrays
from penstock.kernels.expr.evaluate import compile_expr
from penstock.kernels.records.arrow import arrow_schema
from penstock.kernels.records.chunk import ArrowColumns, Chunk
from penstock.kernels.records.records import BadRecord
from penstock.kernels.records.several import PLAIN, several

PIECE = 10_000
"""Records that a step which makes many of one returns at a time: so few that the next step finds them in the processor's cache."""

FEW = 50
"""Fewer rows than this are tested one by one: they cost no more than the arrays would."""


def applied(node: Node, function: Callable[[Any], Any], chunk: Chunk) -> list[Any]:
    """The function's result for each row."""
    made: list[Any] = []
    walk = chunk.walk()
    row: Any = None
    try:
        for row in walk:
            made.append(function(row))
    except Exception as error:
        raise RecordFailed(node, row, walk.at, error) from error
    return made


def evaluated(node: Node, make: Callable[[Any], Any], values: list[Any]) -> list[Any]:
    """An expression's result for each tuple of values."""
    made: list[Any] = []
    try:
        for each in values:
            made.append(make(each))  # noqa: PERF401 - the length tells which one failed
    except Exception as error:
        raise RecordFailed(node, values[len(made)], len(made), error) from error
    return made


def shaped(kernel: Kernel, port: str, records: list[Any], rows: Chunk | None = None) -> Chunk:
    """A checked chunk of the records a step gave; a bad one is blamed on the step."""
    schema = kernel.node.output(port).schema
    try:
        made = Chunk.of(schema, records, leaving=kernel.leaving)
        if kernel.leaving:
            made.batch()
    except BadRecord as error:
        record = rows.rows()[error.at] if rows is not None else records[error.at]
        raise RecordFailed(kernel.node, record, error.at, error) from error
    except (ValueError, OverflowError, TypeError) as error:
        raise _blamed(kernel, schema, records, error) from error
    return made


def _blamed(kernel: Kernel, schema: Schema, records: list[Any], error: Exception) -> RecordFailed:
    """Which record Arrow would not take: a text that is no text, say."""
    for at, record in enumerate(records):
        try:
            Chunk.of(schema, [record]).batch()
        except Exception as own:
            return RecordFailed(kernel.node, record, at, own)
    return RecordFailed(kernel.node, f"one of {len(records)} records", 0, error)


NO_RECORD = (
    "the function returned None, as one does whose return is missing. To leave records out use filter or flat_map; "
    "a function that means null says so in its annotation, such as -> str | None, or returns a record with None in it"
)
"""What is wrong with a function that returns None."""


def returns_none(function: Callable[..., Any]) -> bool:
    """Whether the annotation of a function says that it may return None.

    >>> def find(row) -> str | None: ...
    >>> returns_none(find), returns_none(lambda row: row)
    (True, False)
    """
    said = getattr(function, "__annotations__", {}).get("return", "")
    if isinstance(said, str):
        return said == "None" or said.startswith("Optional[") or "None" in (p.strip() for p in said.split("|"))
    return said is None or type(None) in get_args(said)


class MapKernel(Kernel):
    """One record for each."""

    node: Map

    def __init__(self, node: Map) -> None:
        super().__init__(node)
        self.refuses_none = len(node.output().schema.fields) == 1 and not returns_none(node.function)

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """The records of the function."""
        made = applied(self.node, self.node.function, chunk)
        if self.refuses_none and None in made:
            at = next(at for at, record in enumerate(made) if record is None)
            raise RecordFailed(self.node, chunk.rows()[at], at, BadRecord(NO_RECORD, at))
        yield "out", shaped(self, "out", made, chunk)


class FilterKernel(Kernel):
    """The records that pass."""

    node: Filter

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """The records for which the function returns true."""
        yield "out", chunk.keep([bool(f) for f in applied(self.node, self.node.function, chunk)])


class FlatMapKernel(Kernel):
    """Any number of records for each, on any output."""

    node: FlatMap

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """The records of the function, by output, in pieces. What is a chunk already is let go of before the next piece begins."""
        made: list[Any] = []
        function, walk = self.node.function, chunk.walk()
        row: Any = None
        try:
            for row in walk:
                given = function(row)
                made += given if given.__class__ in PLAIN else several(given)
                if len(made) > PIECE:
                    pieces, made = self._pieces(made), []
                    yield from pieces
        except Exception as error:
            raise self._failed(row, walk.at, error) from error
        yield from self._pieces(made)

    def _pieces(self, records: list[Any]) -> list[tuple[str, Chunk]]:
        if len(self.node.outputs) == 1:
            return [("out", shaped(self, "out", records))]
        return [*by_output(self, records)]

    def _failed(self, row: object, at: int, error: Exception) -> RecordFailed:
        """What the function failed on; a record that does not fit the schema is blamed already."""
        return error if isinstance(error, RecordFailed) else RecordFailed(self.node, row, at, error)


def by_output(kernel: Kernel, records: list[Any]) -> Iterator[tuple[str, Chunk]]:
    """Records with their tags, parted by output."""
    parts: dict[str, list[Any]] = {o.name: [] for o in kernel.node.outputs}
    for record in records:
        if isinstance(record, TaggedRecord):
            _part(kernel.node, parts, record.output).append(record.record)
        else:
            parts["out"].append(record)
    for name, part in parts.items():
        if part:
            yield name, shaped(kernel, name, part)


def _part(node: Node, parts: dict[str, list[Any]], name: str) -> list[Any]:
    if name not in parts:
        error = UnknownName(f"no output {name!r}; {nearest(name, parts)}")
        raise RecordFailed(node, name, 0, error)
    return parts[name]


class MapBatchesKernel(Kernel):
    """Arrow in, Arrow out."""

    node: MapBatches

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """The batches of the function."""
        schema = self.node.output().schema
        for batch in self._batches(chunk.batch()):
            yield "out", Chunk(schema, batch=batch)

    def _batches(self, batch: pa.RecordBatch) -> Iterator[Any]:
        wanted = arrow_schema(self.node.output().schema)
        try:
            given = self.node.function(batch)
            many: Iterable[Any] = [given] if hasattr(given, "schema") else given
            for each in many:
                yield from _as_batches(each, wanted)
        except Exception as error:
            raise RecordFailed(
                self.node, f"a batch of {batch.num_rows} record{'' if batch.num_rows == 1 else 's'}", 0, error
            ) from error


def _as_batches(given: pa.RecordBatch | pa.Table, wanted: pa.Schema) -> Iterator[Any]:
    missing = [n for n in wanted.names if n not in given.schema.names]
    if missing:
        raise ValueError(f"the batch lacks the field {missing[0]!r}; {nearest(missing[0], given.schema.names)}")
    fitted = given.select(wanted.names)
    if fitted.schema != wanted:
        fitted = fitted.cast(wanted)
    yield from fitted.to_batches() if hasattr(fitted, "to_batches") else (fitted,)


@dataclass(frozen=True)
class _Columns:
    """Compiled expressions over one schema."""

    makers: tuple[Callable[[Any], Any], ...]

    def over(self, node: Node, rows: list[Any]) -> list[list[Any]]:
        """A column for each expression."""
        return [evaluated(node, make, rows) for make in self.makers]


class SelectKernel(Kernel):
    """Expressions, evaluated without a JVM: by columns where the records are such and Arrow can, else row by row."""

    node: Select | WithColumns

    def __init__(self, node: Select | WithColumns, schema: Schema) -> None:
        super().__init__(node)
        made = dict(node.columns)
        kept = () if isinstance(node, Select) else schema.names
        self.names = list(dict.fromkeys((*kept, *made)))
        self.columns = _Columns(tuple(compile_expr(made[n], schema) for n in made))
        self.made = list(made)
        self.arrays = {name: array for name in made if (array := compile_arrays(made[name], schema)) is not None}

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """The new records."""
        by_columns = self._by_columns(chunk.batch()) if chunk.is_arrow else None
        yield "out", self._by_rows(chunk) if by_columns is None else by_columns

    def _by_columns(self, batch: pa.RecordBatch) -> Chunk | None:
        """The new records; None where an expression has to look at each row."""
        if len(self.arrays) < len(self.made):
            return None
        schema = self.node.output().schema
        wanted = arrow_schema(schema)
        try:
            known = {name: array(batch) for name, array in self.arrays.items()}
        except pa.ArrowInvalid:
            return None
        arrays = [known[name] if name in known else batch.column(name) for name in self.names]
        cast = [array.cast(field.type) for array, field in zip(arrays, wanted, strict=True)]
        return Chunk(schema, batch=pa.RecordBatch.from_arrays(cast, schema=wanted))

    def _by_rows(self, chunk: Chunk) -> Chunk:
        rows = [*chunk.values()]
        known = dict(zip(chunk.shape.names, chunk.columns(), strict=True))
        known |= dict(zip(self.made, self.columns.over(self.node, rows), strict=True))
        return Chunk(self.node.output().schema, columns=[known[n] for n in self.names])


class WhereKernel(Kernel):
    """A condition, evaluated without a JVM: by columns where Arrow can and there are more than a few records, else row by row."""

    node: Where

    def __init__(self, node: Where, schema: Schema) -> None:
        super().__init__(node)
        self.test = compile_expr(node.condition, schema)
        self.array = compile_arrays(node.condition, schema)

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """The records for which it is true; null is not true."""
        by_columns = self._by_columns(chunk) if chunk.is_arrow or len(chunk) >= FEW else None
        yield "out", self._by_rows(chunk) if by_columns is None else by_columns

    def _by_columns(self, chunk: Chunk) -> Chunk | None:
        """The records that pass; None where the condition has to look at each row."""
        if self.array is None:
            return None
        try:
            passes = self.array(chunk.batch() if chunk.is_arrow else ArrowColumns(chunk))
        except (pa.ArrowException, OverflowError, TypeError, UnicodeError):
            return None
        if chunk.is_arrow:
            return Chunk(chunk.shape.schema, batch=chunk.batch().filter(passes))
        return chunk.keep(passes.to_pylist())

    def _by_rows(self, chunk: Chunk) -> Chunk:
        return chunk.keep([f is True for f in evaluated(self.node, self.test, [*chunk.values()])])


class ExplodeKernel(Kernel):
    """A record for each item; for hosts without a JVM."""

    node: Explode

    def __init__(self, node: Explode, schema: Schema) -> None:
        super().__init__(node)
        self.items = compile_expr(node.items, schema)
        self.at = node.output().schema.names.index(node.column)

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """The records, item by item; a null or empty list gives none."""
        rows = [*chunk.values()]
        made: list[tuple[Any, ...]] = []
        for row, items in zip(rows, evaluated(self.node, self.items, rows), strict=True):
            made += [(*row[: self.at], item, *row[self.at + 1 :]) for item in items or ()]
        yield "out", Chunk.of(self.node.output().schema, made)


class PassKernel(Kernel):
    """Records pass as they are: union, repartition, as_records."""

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """The same records, in the class that this step's stream has."""
        schema = self.node.output().schema
        same = schema.record is chunk.shape.schema.record
        yield "out", chunk if same else Chunk(schema, columns=chunk.columns())


class BranchKernel(Kernel):
    """The first condition that holds decides."""

    node: Branch

    def __init__(self, node: Branch, schema: Schema) -> None:
        super().__init__(node)
        self.tests = [(n, _test(c, schema)) for n, c in node.conditions]

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """The records, parted by output."""
        left = chunk
        for name, (test, plain) in self.tests:
            found = evaluated(self.node, test, [*left.values()]) if plain else applied(self.node, test, left)
            flags = [bool(f) for f in found]
            if any(flags):
                yield name, left.keep(flags)
            left = left.keep([not f for f in flags])
        if len(left):
            yield "otherwise", left


def _test(condition: Expr | Callable[[Any], Any], schema: Schema) -> tuple[Callable[[Any], Any], bool]:
    return (compile_expr(condition, schema), True) if isinstance(condition, Expr) else (condition, False)
