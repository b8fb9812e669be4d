"""The rows of a batch in the driver, and those of them that a sink refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.graph.row import row_class

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType as SparkType


class Refusal(NamedTuple):
    """A row that a sink does not take.

    Attributes:
        number: its index in the batch.
        row: its values.
        said: what is said against it.

    >>> from penstock.connectors.base import Refusal
    >>> Refusal(0, ("a", -1), "n must not be negative").said
    'n must not be negative'
    """

    number: int
    row: tuple[Any, ...]
    said: str


def rows_of(frame: DataFrame) -> list[Any]:
    """The rows of a frame as Penstock's rows, by Arrow.

    Args:
        frame: a plain DataFrame.

    Returns:
        Its rows, in the driver.

    >>> from penstock.connectors.base import SinkConnector, StagedBatch, rows_of
    >>> class Printed(SinkConnector):
    ...     def stage(self, frame, batch):
    ...         print(rows_of(frame))
    ...         return StagedBatch()
    """
    from penstock.kernels.records.arrow import to_columns  # it loads pyarrow

    table = arrow_of(frame)
    make = row_class(tuple(frame.columns))
    rows: Iterable[Any] = zip(*to_columns(table), strict=True) if table.num_rows else ()
    return [tuple.__new__(make, values) for values in rows]


def refusals_of(numbered: DataFrame, refused: Mapping[int, str]) -> list[Refusal]:
    """The rows of a batch that a sink refuses.

    Args:
        numbered: the rows of the batch, with their numbers as the last column.
        refused: by the number of a row, what is said against it.

    Returns:
        Each row that is refused, without the column of numbers.

    >>> from penstock.connectors.base import refusals_of
    >>> refusals_of(None, {})
    []
    """
    if not refused:
        return []
    found = numbered.where(f"{numbered.columns[-1]} in ({', '.join(map(str, refused))})")
    return all_refused(found, refused.__getitem__)


def all_refused(numbered: DataFrame, said: Callable[[int], str]) -> list[Refusal]:
    """Every row of a frame as one that is refused: the last column is its number, by which `said` knows what is said against it."""
    make = row_class(tuple(numbered.columns[:-1]))
    return [Refusal(row[-1], tuple.__new__(make, row[:-1]), said(row[-1])) for row in rows_of(numbered)]


def arrow_of(frame: DataFrame) -> pa.Table:
    """The rows of a frame as an Arrow table, with whatever is inside a field as nullable: Arrow takes no null struct with a part that is declared not null."""
    schema = frame.schema
    loose = _nullable(schema)
    return (frame if loose == schema else frame.to(loose)).toArrow()  # type: ignore[arg-type]  # a struct type makes one


def _nullable(kind: SparkType, *, is_inside: bool = False) -> SparkType:
    """A type whose parts may be null; what is declared of the fields themselves stays."""
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    if isinstance(kind, StructType):
        return StructType(
            [
                StructField(f.name, _nullable(f.dataType, is_inside=True), is_inside or f.nullable, f.metadata)
                for f in kind.fields
            ]
        )
    if isinstance(kind, ArrayType):
        return ArrayType(_nullable(kind.elementType, is_inside=True), kind.containsNull)
    if isinstance(kind, MapType):
        return MapType(kind.keyType, _nullable(kind.valueType, is_inside=True), kind.valueContainsNull)
    return kind
