"""Where the tasks of a run are: what the address of a Spark master says."""

from __future__ import annotations

import re

LOCAL = "local[*]"
"""All cores of this machine."""


def is_on_one_machine(master: str) -> bool:
    """Whether all tasks run on the driver's machine, and see its files.

    >>> is_on_one_machine("local[2]"), is_on_one_machine("local-cluster[2,1,1024]"), is_on_one_machine("spark://host:7077")
    (True, True, False)
    """
    return master.startswith("local")


def is_in_one_jvm(master: str) -> bool:
    """Whether the driver's JVM runs all tasks itself.

    >>> is_in_one_jvm("local"), is_in_one_jvm("local[2]"), is_in_one_jvm("local-cluster[2,1,1024]")
    (True, True, False)
    """
    return re.match(r"local(\[|$)", master) is not None
