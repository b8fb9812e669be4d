"""The settings of topologies and components, under the names that Storm has for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _from(least: int) -> Callable[[object], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least


_KINDS: dict[str, tuple[Callable[[object], bool], str]] = {
    TICK: (_is_number, "a number of seconds above 0"),
    TIMEOUT: (_is_number, "a number of seconds above 0"),
    PENDING: (_from(1), "a number of messages, 1 or more"),
    ACKERS: (_from(0), "0, or a number of ackers"),
    "topology.workers": (_from(1), "a number of workers, 1 or more"),
    "topology.tasks": (_from(1), "a number of tasks, 1 or more"),
    "topology.max.task.parallelism": (_from(1), "a number of tasks, 1 or more"),
    "topology.debug": (lambda value: isinstance(value, bool), "true or false"),
    "topology.disable.loadaware.messaging": (
        lambda value: value is True,
        "true, as it always is here: a shuffle deals tuples out evenly and looks at no load, so that the same input goes to the same tasks; leave it out",
    ),
    "topology.name": (lambda value: isinstance(value, str), "a text"),
}
"""Settings of Storm whose values are checked; those that are not named above have no effect here, and reach the context."""


def checked_config(config: object) -> dict[str, Any]:
    """The settings as a dict; those that Penstock knows are of the right type. Others are the user's own, and go to the context.

    Raises:
        FlowError: a setting has a value that cannot be meant.
    """
    if not isinstance(config, Mapping) or not all(isinstance(name, str) for name in config):
        raise FlowError(f"config: expected a dict of names to values, such as {{{TICK!r}: 10}}, got {config!r}")
    for name, value in config.items():
        fits, expected = _KINDS.get(name, (None, ""))
        if fits is not None and value is not None and not fits(value):
            raise FlowError(f"config {name!r}: expected {expected}, got {value!r}")
    return dict(config)


def seconds_of(config: Mapping[str, Any], name: str, usual: float | None = None) -> float | None:
    """A setting in seconds; the usual value where it is not given."""
    value = config.get(name)
    return usual if value is None else float(value)
