"""The state of a flow, from outside: `penstock.state.read(".penstock/count", "count")` returns an Arrow table.

Works on the checkpoint folder of a flow that runs or has stopped, and on savepoints; needs neither Spark nor the flow itself. Nothing
of it is run: values that are typed or made of plain builtins are shown as they are, other objects as `<pickled, 210 bytes>`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.location import Address, address_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from penstock.state.one_version import Snapshot  # it loads pyarrow
    from penstock.state.pattern_runs import RunSummary
    from penstock.state.reader import OpenState, Store


def versions(folder: str | Address) -> list[int]:
    """The versions that are kept, oldest first."""
    return _open(folder).versions()


def stores(folder: str | Address, version: int | None = None) -> list[Store]:
    """What the steps keep in a version, the newest if none is given."""
    return _open(folder).stores(version)


def read(folder: str | Address, step: str, version: int | None = None) -> pa.Table:
    """What a step keeps: a row for each key with its values, the rows that it keeps in time, or the runs of a pattern.

    Of the newest version another try is made when the flow sweeps it away meanwhile; an older one says so.
    """
    return _open(folder).read(step, version)


def snapshot(folder: str | Address, version: int | None = None) -> Snapshot:
    """One version of the state, the newest if none is given: all that is read of it is of the same moment, whatever the flow does meanwhile.

    Versions are swept after a while (`--keep-versions`); what is read after that says so.
    """
    from penstock.state.one_version import Snapshot  # it loads pyarrow

    state = _open(folder)
    return state.of_version(version, lambda number: Snapshot.of(state, number))


def run_summaries(folder: str | Address, version: int | None = None) -> list[RunSummary]:
    """The runs of each pattern in figures: how many, by what they wait for, since when, and how much room they take."""
    return _open(folder).runs(version)


def frame(spark: SparkSession, folder: str | Address, step: str, version: int | None = None) -> DataFrame:
    """The same as a DataFrame of Spark."""
    return spark.createDataFrame(read(folder, step, version))


def _open(folder: str | Address) -> OpenState:
    from penstock.state.reader import OpenState  # it loads pyarrow

    return OpenState(address_of(folder))
