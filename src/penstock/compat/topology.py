"""Topologies as classes whose attributes are the specs of their components, as streamparse and heronpy have them."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.compat.components import BoltAdapter, PortedBolt, PortedSpout, SpoutAdapter
from penstock.compat.heron_constants import settings_of
from penstock.errors import FlowError
from penstock.frontends.topology.declare import BoltDeclaration
from penstock.frontends.topology.topology import Topology as PenstockTopology
from penstock.graph.graph import Graph
from penstock.graph.logic.topology.tuples import DEFAULT

LIMIT = "penstock.spout.limit"
"""A setting of a spout, or of the topology: how many tuples a bounded run takes of it."""


class Grouping:
    """How tuples find their task."""

    SHUFFLE = ("shuffle",)
    ALL = ("all",)
    GLOBAL = ("global_",)
    LOWEST = ("global_",)
    NONE = ("none",)
    DIRECT = ("direct",)
    LOCAL_OR_SHUFFLE = ("local_or_shuffle",)

    @classmethod
    def fields(cls, *fields: Any) -> tuple[Any, ...]:
        """Equal values of the fields to equal tasks."""
        flat = [f for each in fields for f in ([each] if isinstance(each, str) else each)]
        if not flat:
            raise FlowError("Grouping.fields needs at least one field, such as 'word'")
        return ("fields", *flat)

    @classmethod
    def custom(cls, chooser: Any) -> tuple[Any, ...]:
        """Your own choice: a function, an object with `choose` or `choose_tasks`, or a text that names its class, such as `module.Class`."""
        return ("custom", named_class(chooser)() if isinstance(chooser, str) else chooser)

    @classmethod
    def custom_object(cls, java: Any) -> tuple[Any, ...]:
        """A class of Java, which is refused."""
        raise FlowError("Grouping.custom_object names a class of Java, which does not run here; use Grouping.custom")


def named_class(path: str) -> Any:
    """The class of a path.

    Raises:
        FlowError: there is none.
    """
    module, _, name = path.replace(":", ".").rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise FlowError(
            f"Grouping.custom: expected the path of a class, such as module.Class, got {path!r} ({error})"
        ) from None


class StreamOf:
    """A stream of a component: `spec['errors']`."""

    def __init__(self, spec: Spec, stream: str = DEFAULT) -> None:
        self.spec, self.stream = spec, stream


class Spec:
    """A component of a topology: its class, its name, what it reads, and as how many tasks it runs."""

    def __init__(
        self,
        component: type[Any],
        name: str | None = None,
        inputs: Any = None,
        par: int | Mapping[str, int] = 1,
        config: Mapping[str, Any] | None = None,
        outputs: Any = None,
    ) -> None:
        self.component, self.name, self.inputs = component, name, inputs
        self.par = max(par.values()) if isinstance(par, Mapping) else par
        self.config = {**dict(component.config), **dict(config or {})}
        self.outputs = outputs

    def __getitem__(self, stream: str) -> StreamOf:
        return StreamOf(self, stream)

    def __repr__(self) -> str:
        return f"{self.component.__qualname__}.spec({self.name or ''})"

    def subscriptions(self) -> Iterable[tuple[StreamOf, tuple[Any, ...]]]:
        """What it reads: streams and groupings."""
        given = self.inputs or {}
        pairs = given.items() if isinstance(given, Mapping) else [(each, Grouping.SHUFFLE) for each in _listed(given)]
        for source, grouping in pairs:
            yield (source if isinstance(source, StreamOf) else StreamOf(source)), grouping


def _listed(given: Any) -> list[Any]:
    return [given] if isinstance(given, Spec | StreamOf) else list(given)


def built(name: str, specs: Mapping[str, Spec], config: Mapping[str, Any]) -> PenstockTopology:
    """The topology of specs.

    Raises:
        FlowError: there is no spout, or a component reads what is not among them.
    """
    top = PenstockTopology(name, settings_of(config))
    names = {id(spec): key for key, spec in specs.items()}
    for key, spec in specs.items():
        if issubclass(spec.component, PortedSpout):
            limit = spec.config.get(LIMIT, config.get(LIMIT))
            top.spout(key, SpoutAdapter(spec.component, spec.outputs), spec.par, limit=limit, config=spec.config)
        elif issubclass(spec.component, PortedBolt):
            settings = {**spec.component.needed({**config, **spec.config}), **spec.config}
            _subscribe(top.bolt(key, BoltAdapter(spec.component, spec.outputs), spec.par, config=settings), spec, names)
        else:
            raise FlowError(f"{key!r} of topology {name!r} is neither a Spout nor a Bolt: {spec.component!r}")
    return top


def _subscribe(bolt: BoltDeclaration, spec: Spec, names: Mapping[int, str]) -> None:
    for source, grouping in spec.subscriptions():
        named = names.get(id(source.spec))
        if named is None:
            raise FlowError(
                f"bolt {bolt.name!r}: expected inputs of its topology ({', '.join(names.values())}), got {source.spec!r}"
            )
        if not isinstance(grouping, tuple):
            raise FlowError(f"bolt {bolt.name!r}: expected a grouping such as Grouping.SHUFFLE, got {grouping!r}")
        method, *arguments = grouping
        getattr(bolt, method)(named, *arguments, stream=source.stream)


class TopologyType(type):
    """The class of topologies: the attributes that are specs are its components, under their names."""

    specs: dict[str, Spec]

    def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> TopologyType:
        """Gathers the specs of the class and of its bases."""
        made = super().__new__(mcs, name, bases, body)
        inherited = {k: s for base in reversed(bases) for k, s in getattr(base, "specs", {}).items()}
        own = [(s.name or key, s) for key, s in body.items() if isinstance(s, Spec)]
        made.specs = inherited | dict(own)
        if twice := [key for key, count in Counter(key for key, _ in own).items() if count > 1]:
            raise FlowError(f"topology {name!r}: expected a name of its own for each component, got {twice[0]!r} twice")
        return made

    @property
    def topology(cls) -> PenstockTopology:
        """The topology that the class stands for."""
        return built(getattr(cls, "name", None) or cls.__name__, cls.specs, getattr(cls, "config", {}))

    @property
    def graph(cls) -> Graph:
        """Its graph, by which `penstock run` and the test kit know it."""
        if not cls.specs:
            raise AttributeError(f"{cls.__name__} has no components")
        return cls.topology.graph


class Topology(metaclass=TopologyType):
    """The base of a topology: its class attributes are `Spout.spec(...)` and `Bolt.spec(...)`."""

    config: Mapping[str, Any] = {}
