"""The spouts and bolts of heronpy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from penstock.compat.components import PortedBolt, PortedSpout
from penstock.compat.heron_context import TopologyContext
from penstock.compat.topology import Spec


class HashMapState(dict[Any, Any]):
    """The state of a component: a dict, with the names of heronpy's.

    >>> state = HashMapState()
    >>> state.put("a", 1)
    >>> state.get("a"), list(state.enumerate())
    (1, [(0, 'a')])
    """

    def put(self, key: Any, value: Any) -> None:
        """Keeps a value for a key."""
        self[key] = value

    def enumerate(self) -> Iterator[tuple[int, Any]]:
        """The keys, with their numbers."""
        return enumerate(self)


class StatefulComponent:
    """The state of a component: a dict that it gets before `initialize`, and that is saved with each batch."""

    context_for = TopologyContext
    new_state = HashMapState

    @classmethod
    def typed(cls, config: Mapping[str, Any]) -> dict[str, Any]:
        """Settings as heronpy hands them out: texts that say a number or a truth value are these."""
        return {name: _typed(value) for name, value in config.items()}

    def init_state(self, stateful_state: dict[Any, Any]) -> None:
        """Gets the state."""

    def pre_save(self, checkpoint_id: Any) -> None:
        """Called before the state is saved."""


class Spout(StatefulComponent, PortedSpout):
    """A spout, as heronpy has it."""

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        par: int = 1,
        config: Mapping[str, Any] | None = None,
        optional_outputs: Any = None,
    ) -> Spec:
        """Its place in a topology."""
        return Spec(cls, name, None, par, config, _outputs(cls, optional_outputs))


class Bolt(StatefulComponent, PortedBolt):
    """A bolt, as heronpy has it: it acks its tuples by itself, and anchors where it says so."""

    auto_ack = False
    auto_anchor = False
    auto_fail = True

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        inputs: Any = None,
        par: int = 1,
        config: Mapping[str, Any] | None = None,
        optional_outputs: Any = None,
    ) -> Spec:
        """Its place in a topology."""
        return Spec(cls, name, inputs, par, config, _outputs(cls, optional_outputs))


def _typed(value: Any) -> Any:
    """A setting that may be a number or a truth value as a text."""
    if not isinstance(value, str):
        return value
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    for kind in (int, float):
        with suppress(ValueError):
            return kind(value)
    return value


def _outputs(cls: type[Any], more: Any) -> Any:
    return [*(cls.outputs or []), *more] if more else None
