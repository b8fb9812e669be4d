"""Windows over a stream by key."""

from __future__ import annotations


class Windowing:
    """What makes windows of a stream by key."""
