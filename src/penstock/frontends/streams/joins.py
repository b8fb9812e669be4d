"""Joins of streams."""

from __future__ import annotations


class Joining:
    """The joins of a stream with other streams."""
