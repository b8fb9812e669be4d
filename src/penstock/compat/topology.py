"""Topologies as classes whose attributes are the specs of their components, as streamparse and heronpy have them."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from penstock.compat.components import BoltAdapter, PortedBolt, PortedSpout, SpoutAdapter, declared_streams
from penstock.compat.heron_constants import settings_of
from penstock.compat.programs import ProgramBolt, ProgramSpout
from penstock.errors import FlowError
from penstock.frontends.topology.declare import BoltDeclaration
from penstock.frontends.topology.topology import Topology as PenstockTopology
from penstock.graph.graph import Graph
from penstock.graph.logic.topology.components import Bolt, Spout
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
    def custom_object(cls, java: Any, arguments: Any = None) -> tuple[Any, ...]:
        """A class of Java, which is refused."""
        raise FlowError("Grouping.custom_object names a class of Java, which does not run here; use Grouping.custom")

    @classmethod
    def custom_serialized(cls, java: Any) -> tuple[Any, ...]:
        """An object of Java, which is refused."""
        raise FlowError(
            "Grouping.custom_serialized has an object of Java, which does not run here; use Grouping.custom"
        )


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

    @property
    def usual_grouping(self) -> tuple[str, ...]:
        """How its tuples are dealt out where nothing is said: a direct stream names its tasks."""
        spec = self.spec
        declared = declared_streams(spec.outputs or spec.component.outputs) if isinstance(spec, Spec) else []
        return Grouping.DIRECT if (self.stream, True) in {(n, d) for n, _, d in declared} else Grouping.SHUFFLE


class Spec:
    """A component of a topology: its class, its name, what it reads, and as how many tasks it runs."""

    def __init__(
        self,
        component: Any,
        name: str | None = None,
        inputs: Any = None,
        par: int | Mapping[str, int] = 1,
        config: Mapping[str, Any] | None = None,
        outputs: Any = None,
    ) -> None:
        self.component, self.name, self.inputs = component, name, inputs
        self.par = max(par.values()) if isinstance(par, Mapping) else par
        self.config = _typed(component, (config if config is not None else component.config) or {})
        self.outputs = outputs

    def __getitem__(self, stream: str) -> StreamOf:
        return StreamOf(self, stream)

    def __repr__(self) -> str:
        named = getattr(self.component, "__qualname__", None) or repr(self.component)
        return f"{named}.spec({self.name or ''})"

    def subscriptions(self) -> Iterable[tuple[StreamOf, tuple[Any, ...]]]:
        """What it reads: streams and groupings."""
        given = self.inputs or {}
        pairs = given.items() if isinstance(given, Mapping) else [(each, None) for each in _listed(given)]
        for source, grouping in pairs:
            stream = source if isinstance(source, StreamOf) else StreamOf(source)
            yield stream, grouping if grouping is not None else stream.usual_grouping


def _listed(given: Any) -> list[Any]:
    return [given] if isinstance(given, Spec | StreamOf) else list(given)


def built(name: str, specs: Mapping[str, Spec], config: Mapping[str, Any]) -> PenstockTopology:
    """The topology of specs.

    Raises:
        FlowError: there is no spout, or a component reads what is not among them.
    """
    typed = _typed(next((spec.component for spec in specs.values()), None), config)
    top = PenstockTopology(name, settings_of(typed))
    names = {id(spec): key for key, spec in specs.items()}
    for key, spec in specs.items():
        if (spout := _spout_of(spec)) is not None:
            limit = spec.config.get(LIMIT, typed.get(LIMIT))
            top.spout(key, spout, spec.par, limit=limit, config=spec.config)
        elif (bolt := _bolt_of(spec)) is not None:
            settings = {**spec.component.needed({**typed, **spec.config}), **spec.config}
            _subscribe(top.bolt(key, bolt, spec.par, config=settings), spec, names)
        else:
            raise FlowError(f"{key!r} of topology {name!r} is neither a Spout nor a Bolt: {spec.component!r}")
    return top


def _typed(component: Any, config: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as those who wrote the component mean them."""
    typed: Callable[[Mapping[str, Any]], dict[str, Any]] = getattr(component, "typed", dict)
    return typed(config)


def _spout_of(spec: Spec) -> Spout | None:
    """The spout of a spec; None where it has none."""
    if isinstance(spec.component, ProgramSpout):
        return spec.component.made(spec.outputs)
    is_spout = isinstance(spec.component, type) and issubclass(spec.component, PortedSpout)
    return SpoutAdapter(spec.component, spec.outputs) if is_spout else None


def _bolt_of(spec: Spec) -> Bolt | None:
    """The bolt of a spec; None where it has none."""
    if isinstance(spec.component, ProgramBolt):
        return spec.component.made(spec.outputs)
    is_bolt = isinstance(spec.component, type) and issubclass(spec.component, PortedBolt)
    return BoltAdapter(spec.component, spec.outputs) if is_bolt else None


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
