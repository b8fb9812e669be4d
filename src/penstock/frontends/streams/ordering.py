"""Steps that look at many records at once: deduplication, top-n, sorting, changelogs."""

from __future__ import annotations


class Ordering:
    """What a stream can do without a key."""


class KeyedOrdering:
    """What a stream by key can do."""
