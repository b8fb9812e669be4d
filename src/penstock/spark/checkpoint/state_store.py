"""The state in a checkpoint or savepoint, opened by those that look into it before Spark is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.location import Address
from penstock.storage import open_storage

if TYPE_CHECKING:
    from penstock.state.store import StateStore


def state_store_of(folder: Address) -> StateStore:
    """What the steps of a flow keep below a folder. Only a folder that has something is asked: a first start loads no pyarrow before its JVM runs."""
    from penstock.state.store import StateStore  # it loads pyarrow

    return StateStore(open_storage(folder / "state"))
