"""The class a user writes for a `with_broadcast` step: rules that reach every task, and events that are judged by them.

>>> class Limits(BroadcastProcess):
...     def on_event(self, row, rules):
...         limit = rules.get(row.sensor)
...         if limit is not None and row.value > limit.most:
...             yield row.sensor, row.value
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.graph.logic.process import instance_of


class BroadcastProcess:
    """The base of a step of your own that has a stream of rules beside its stream of events.

    The newest rule of each key is kept and survives restarts. Every event sees all rules.
    """

    def on_rule(self, rule: Any) -> Any:
        """What to keep of a rule under its key; None forgets the key. The rule itself, unless you say otherwise."""
        return rule

    def on_event(self, row: Any, rules: Mapping[Any, Any]) -> Iterable[Any] | None:
        """Called for each event, with what is kept of each rule by key; gives any number of records."""
        raise NotImplementedError


def check_broadcast(step: str, logic: object) -> BroadcastProcess:
    """An instance of the user's class, or an error that says what is wrong with it."""
    made: BroadcastProcess = instance_of(step, logic, BroadcastProcess, "on_event(self, row, rules)")
    return made
