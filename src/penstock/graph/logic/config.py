"""The settings of topologies and components, under the names that Storm has for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.errors import FlowError

TICK = "topology.tick.tuple.freq.secs"
"""How often a bolt gets a tick tuple, in seconds."""
TIMEOUT = "topology.message.timeout.secs"
"""After how many seconds a message fails; it does so before twice as many have passed."""
PENDING = "topology.max.spout.pending"
"""How many messages of one task of a spout may be open."""
ACKERS = "topology.acker.executors"
"""0 acks every message at once, and tracks none."""
USUAL_TIMEOUT = 30.0

_NUMBERS = {TICK: "a number of seconds above 0", TIMEOUT: "a number of seconds above 0"}
_COUNTS = {PENDING: (1, "a number of messages, 1 or more"), ACKERS: (0, "0, or a number of ackers")}


def checked_config(config: object) -> dict[str, Any]:
    """The settings as a dict; those that Penstock knows are of the right type. Others are the user's own, and go to the context.

    Raises:
        FlowError: a setting has a value that cannot be meant.
    """
    if not isinstance(config, Mapping) or not all(isinstance(name, str) for name in config):
        raise FlowError(f"config: expected a dict of names to values, such as {{{TICK!r}: 10}}, got {config!r}")
    for name, value in config.items():
        _check(name, value)
    return dict(config)


def _check(name: str, value: object) -> None:
    if value is None:
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if name in _NUMBERS and not (is_number and value > 0):  # type: ignore[operator]  # a number
        raise FlowError(f"config {name!r}: expected {_NUMBERS[name]}, got {value!r}")
    if name in _COUNTS:
        least, expected = _COUNTS[name]
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise FlowError(f"config {name!r}: expected {expected}, got {value!r}")


def seconds_of(config: Mapping[str, Any], name: str, usual: float | None = None) -> float | None:
    """A setting in seconds; the usual value where it is not given."""
    value = config.get(name)
    return usual if value is None else float(value)
