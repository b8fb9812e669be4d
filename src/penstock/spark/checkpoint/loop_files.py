"""The files of loops in a checkpoint, `loops/STEP/STEP-BATCH-...`."""

from __future__ import annotations


def batch_of(name: str) -> int:
    """The batch that wrote a file of a loop; -1 for any other file.

    >>> [batch_of(f"loops/back/{file}") for file in ("back-00000007-a.parquet", "_other", "_penstock/back-3", "_penstock/12")]
    [7, -1, -1, -1]
    """
    folder, _, file = name.rpartition("/")
    step, dash, rest = file.partition(f"{folder.rpartition('/')[2]}-")
    number = rest.split("-")[0]
    return int(number) if dash and not step and number.isdigit() else -1
