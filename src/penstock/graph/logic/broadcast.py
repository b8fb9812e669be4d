"""The class a user writes for a `with_broadcast` step: rules that reach every task, and events that are judged by them.

>>> class Limits(BroadcastProcess):
...     def on_event(self, row, rules):
...         limit = rules.get(row.sensor)
...         if limit is not None and row.value > limit.most:
...             yield row.sensor, row.value
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from penstock.graph.logic.process import instance_of


class BroadcastProcess:
    """The base of a step of your own that has a stream of rules beside its stream of events.

    The newest rule of each key is kept and survives restarts. Every event sees all rules.

    >>> import penstock as ps
    >>> from penstock.testing import run_local
    >>> class Limits(ps.BroadcastProcess):
    ...     def on_event(self, row, rules):
    ...         if row.value > rules[row.sensor].most:
    ...             yield row.sensor
    >>> flow = ps.Flow("demo")
    >>> rules = flow.source("rules", ps.items([("a", 5)], "sensor string, most int"))
    >>> readings = flow.source("readings", ps.items([("a", 6)], "sensor string, value int"))
    >>> readings.with_broadcast("high", rules, Limits, "sensor string", key="sensor").sink("out", ps.console())
    >>> run_local(flow)["out"]
    [Row(sensor='a')]
    """

    names_rule: ClassVar[str] = ""
    """The field of its records, if any, that holds the key of the rule each is for: what steps after it keep by that field goes with the rule."""

    def on_rule(self, rule: Any) -> Any:
        """Called for each rule.

        Args:
            rule: the rule.

        Returns:
            What to keep of it under its key; None forgets the key. The rule itself, unless you say otherwise.
        """
        return rule

    def on_event(self, row: Any, rules: Mapping[Any, Any]) -> Iterable[Any] | None:
        """Called for each event. You must define it.

        Args:
            row: the event.
            rules: what is kept of each rule, by key.

        Returns:
            Any number of records, or None; a generator will do.

        Raises:
            NotImplementedError: the class does not define it.
        """
        raise NotImplementedError


def check_broadcast(step: str, logic: object) -> BroadcastProcess:
    """An instance of the user's class, or an error that says what is wrong with it."""
    made: BroadcastProcess = instance_of(step, logic, BroadcastProcess, "on_event(self, row, rules)")
    return made
