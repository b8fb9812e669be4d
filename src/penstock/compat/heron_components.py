"""The spouts and bolts of heronpy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.compat.components import PortedBolt, PortedSpout
from penstock.compat.heron_context import TopologyContext
from penstock.compat.topology import Spec


class Stateful:
    """The state of a component: a dict that it gets before `initialize`, and that is saved with each batch."""

    context_for = TopologyContext

    def init_state(self, stateful_state: dict[Any, Any]) -> None:
        """Gets the state."""

    def pre_save(self, checkpoint_id: Any) -> None:
        """Called before the state is saved."""


class Spout(Stateful, PortedSpout):
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


class Bolt(Stateful, PortedBolt):
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

    def process_tick(self, tup: Any) -> None:
        """Ticks come to `process`, which asks `is_tick`."""
        self.process(tup)


def _outputs(cls: type[Any], more: Any) -> Any:
    return [*(cls.outputs or []), *more] if more else None
