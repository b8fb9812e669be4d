"""The garbage collector of a JVM that runs a whole flow: the parallel one, unless the user says otherwise or the heap is large.

On two cores Nexmark takes a sixth to a third less processor time with it than with G1, which works beside the flow all the time
(docs/decisions/0012-start.md). It stops the flow while it works, the longer the larger the heap; so a large heap is left to Java.
"""

from __future__ import annotations

import re

PARALLEL = "-XX:+UseParallelGC"
LARGEST = 8192
"""Up to how many MiB of heap."""
_UNITS = {"k": 1 / 1024, "m": 1.0, "": 1.0, "g": 1024.0, "t": 1024.0 * 1024}
_OWN = re.compile(r"-XX:\+Use\w+GC")


def gc_options(memory: str, given: str = "") -> str:
    """The options of a JVM, with those for its garbage collector.

    Args:
        memory: How much heap it has, as Spark writes it.
        given: The user's own options; one that names a collector wins.

    Returns:
        The options.

    >>> gc_options("2g", "-Dmine=1"), gc_options("64g"), gc_options("2g", "-XX:+UseZGC")
    ('-XX:+UseParallelGC -Dmine=1', '', '-XX:+UseZGC')
    """
    is_small = 0 < mebibytes(memory) <= LARGEST
    return f"{PARALLEL} {given}".strip() if is_small and not _OWN.search(given) else given


def mebibytes(text: str) -> float:
    """A size as Spark writes it; 0 where it is none.

    >>> mebibytes("2g"), mebibytes("512m"), mebibytes("lots")
    (2048.0, 512.0, 0.0)
    """
    found = re.fullmatch(r"\s*(\d+)([kmgt]?)b?\s*", text.lower())
    return int(found[1]) * _UNITS[found[2]] if found else 0.0
