"""The columns beside the rows of a batch, where those that Kafka refuses become dead letters."""

from __future__ import annotations

NUMBER, REFUSED = "__number", "__refused"
"""The number of a row, and why it cannot be written."""
