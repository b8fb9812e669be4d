"""Storm's Flux: a topology as YAML, with Python classes in `className`.

>>> from penstock.flowfiles.yaml_text import read_yaml
>>> text = '''
... name: words
... spouts:
...   - {id: lines, className: "penstock:items", constructorArgs: [["a b"], line string]}
... bolts:
...   - {id: out, className: "penstock:console"}
... streams:
...   - {from: lines, to: out, grouping: {type: SHUFFLE}}
... '''
>>> read_flux(read_yaml(text, "words.yaml", lenient=True))
Topology('words', 2 components)
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from penstock.errors import nearest
from penstock.flowfiles.flux_objects import OBJECT, FluxObjects
from penstock.flowfiles.substitution import substituted
from penstock.flowfiles.yaml_text import Place, read_text, read_yaml
from penstock.frontends.topology.declare import BoltDeclaration
from penstock.frontends.topology.topology import Topology
from penstock.graph.caller import written_at
from penstock.graph.logic.topology.components import Bolt, Spout
from penstock.graph.logic.topology.partitioned import PartitionedSpout
from penstock.graph.logic.topology.tuples import DEFAULT
from penstock.graph.nodes import Endpoint

KEYS = ("name", "config", "includes", "components", "spouts", "bolts", "streams", "topologySource", "workerHooks")
SIGNS = ("spouts", "bolts", "streams", "topologySource", "components", "includes")
"""Keys by which a Flux file is known."""
_COMPONENT = (
    "parallelism",
    "numTasks",
    "onHeapMemoryLoad",
    "offHeapMemoryLoad",
    "cpuLoad",
    "memoryLoad",
    "config",
    "groupingInfo",
)
_STREAM = ("id", "name", "from", "to", "grouping")
_GROUPING = ("type", "streamId", "args", "customClass")
_TYPES = ("ALL", "CUSTOM", "DIRECT", "SHUFFLE", "LOCAL_OR_SHUFFLE", "FIELDS", "GLOBAL", "NONE")
_LISTS = ("components", "spouts", "bolts", "streams")


def read_flux(root: Place, properties: Mapping[str, str] | None = None) -> Topology:
    """The topology of a Flux file.

    Args:
        root: the file.
        properties: what stands for `${name}` in files that it includes; in the file itself they have been put in already.

    Raises:
        FlowError: something in it is not as it must be; with file, line and column.
    """
    return _FluxReader(root, properties or {}).topology()


class _FluxReader:
    """A topology under construction."""

    def __init__(self, root: Place, properties: Mapping[str, str]) -> None:
        self.root, self.folder = root, Path(root.file).absolute().parent
        self.given = root.checked(KEYS)
        self.properties = properties
        self.lists = {key: self._listed(self.given, key) for key in _LISTS}
        self.config: dict[str, Any] = _config(self.given)
        for each in self._listed(self.given, "includes"):
            self._include(each)
        self.objects = FluxObjects(self.folder)

    def _listed(self, given: dict[str, Place], key: str) -> list[Place]:
        return given[key].items() if key in given and not given[key].is_null else []

    def _include(self, place: Place) -> None:
        """Takes over what another file has; its own includes do not count."""
        entries = place.checked(("resource", "file", "override"), ("file",))
        override = "override" in entries and entries["override"].boolean()
        root = self._included(entries)
        given = root.checked(KEYS)
        other = _config(given)
        self.config = self.config | other if override else other | self.config
        for key in _LISTS:
            self.lists[key] = _merged(key, self.lists[key], self._listed(given, key), override)
        for key in ("name", "topologySource"):
            if key in given and (override or key not in self.given):
                self.given[key] = given[key]

    def _included(self, entries: dict[str, Place]) -> Place:
        named = entries["file"].as_text()
        from_resource = "resource" in entries and entries["resource"].boolean()
        choices = [self.folder / named.lstrip("/")] if from_resource else [Path(named), self.folder / named]
        found = next((path for path in choices if path.is_file()), None)
        if found is None:
            raise entries["file"].error(
                f"there is no file {named!r} to include (looked at {', '.join(map(str, choices))})"
            )
        return flux_root(found, self.properties)

    def topology(self) -> Topology:
        """The whole."""
        for each in self.lists["components"]:
            self.objects.add(each)
        if "topologySource" in self.given:
            return self._from_source(self.given["topologySource"])
        if "name" not in self.given:
            raise self.root.error("expected the key 'name': the name of the topology")
        with self.given["name"].naming():
            top = Topology(self.given["name"].as_text(), self.config)
        for each in self.lists["spouts"]:
            self._spout(top, each)
        readers = {name: made for each in self.lists["bolts"] for name, made in [self._bolt(top, each)]}
        if not self.lists["spouts"]:
            raise self.root.error("expected spouts: a topology needs at least one")
        for each in self.lists["streams"]:
            self._stream(top, each, readers)
        return top

    def _from_source(self, place: Place) -> Topology:
        entries = place.checked((*OBJECT, "methodName"))
        if self.lists["spouts"] or self.lists["bolts"] or self.lists["streams"]:
            raise place.error("a topologySource makes the whole topology: leave out spouts, bolts and streams")
        source = self.objects.made(place, {k: v for k, v in entries.items() if k != "methodName"})
        name = entries["methodName"].as_text() if "methodName" in entries else "getTopology"
        method = getattr(source, name, None) or getattr(source, "get_topology", None)
        if not callable(method):
            raise place.error(f"{source!r} has no method {name!r} that makes a topology from the settings")
        with place.naming():
            made = method(self.config)
        if not hasattr(type(made), "graph"):
            raise place.error(f"expected a ps.Topology from {name}, got {type(made).__name__}")
        return made  # type: ignore[no-any-return]  # what has a graph

    def _spout(self, top: Topology, place: Place) -> None:
        entries = place.checked((*OBJECT, *_COMPONENT), ("id", "className"))
        made = self.objects.add(place, _COMPONENT)
        if not isinstance(made, Spout | PartitionedSpout | Endpoint):
            raise entries["className"].error(f"expected a ps.Spout or an endpoint, got {type(made).__name__}")
        _refuse_config(made, entries)
        with place.naming(), written_at(place.line):
            top.spout(entries["id"].as_text(), made, _tasks(entries), config=_config(entries))

    def _bolt(self, top: Topology, place: Place) -> tuple[str, BoltDeclaration | Endpoint]:
        entries = place.checked((*OBJECT, *_COMPONENT), ("id", "className"))
        made, name = self.objects.add(place, _COMPONENT), entries["id"].as_text()
        _refuse_config(made, entries)
        if isinstance(made, Endpoint):
            return name, made
        if not isinstance(made, Bolt):
            raise entries["className"].error(f"expected a ps.Bolt or an endpoint, got {type(made).__name__}")
        with place.naming(), written_at(place.line):
            return name, top.bolt(name, made, _tasks(entries), config=_config(entries))

    def _stream(self, top: Topology, place: Place, readers: dict[str, BoltDeclaration | Endpoint]) -> None:
        entries = place.checked(_STREAM, ("from", "to", "grouping"))
        reader = entries["to"].as_text()
        if reader not in readers:
            raise entries["to"].error(f"no bolt {reader!r}; {nearest(reader, readers)}")
        source = entries["from"].as_text()
        if source not in [each.text("id") for each in (*self.lists["spouts"], *self.lists["bolts"])]:
            raise entries["from"].error(f"no spout or bolt {source!r}; {nearest(source, self.objects.found)}")
        grouping = entries["grouping"].checked(_GROUPING, ("type",))
        stream = grouping["streamId"].as_text() if "streamId" in grouping else DEFAULT
        with place.naming(), written_at(place.line):
            found = readers[reader]
            if isinstance(found, Endpoint):
                top.sink(reader, found, from_=source, stream=stream)
            else:
                self._subscribe(found, source, stream, grouping)

    def _subscribe(self, bolt: BoltDeclaration, source: str, stream: str, grouping: dict[str, Place]) -> None:
        kind = grouping["type"].as_text()
        if kind not in _TYPES:
            raise grouping["type"].error(f"no grouping {kind!r}; {nearest(kind, _TYPES)}")
        if kind == "FIELDS":
            bolt.fields(source, *_fields(grouping), stream=stream)
        elif kind == "CUSTOM":
            bolt.custom(source, self._chooser(grouping), stream=stream)
        else:
            method = {"GLOBAL": "global_"}.get(kind, kind.lower())
            getattr(bolt, method)(source, stream=stream)

    def _chooser(self, grouping: dict[str, Place]) -> Any:
        if "customClass" not in grouping:
            raise grouping["type"].error("a CUSTOM grouping needs customClass: the class that chooses")
        place = grouping["customClass"]
        return self.objects.made(place, place.checked(OBJECT))


def flux_root(path: Path, properties: Mapping[str, str]) -> Place:
    """The root of a Flux file, with what stands for `${...}` in it."""
    return read_yaml(substituted(read_text(path), properties, os.environ), str(path), lenient=True)


def _config(given: dict[str, Place]) -> dict[str, Any]:
    found = given["config"].plain() if "config" in given and not given["config"].is_null else {}
    if not isinstance(found, dict):
        raise given["config"].error("expected keys and values")
    return found


def _refuse_config(made: object, entries: dict[str, Place]) -> None:
    if isinstance(made, Endpoint) and "config" in entries:
        raise entries["config"].error("an endpoint has no settings; what it takes are its constructorArgs")


def _merged(key: str, mine: list[Place], other: list[Place], override: bool) -> list[Place]:
    """Entries of both files. What has an id is there once: the one of the included file where it overrides, else the file's own."""
    if key == "streams":
        return [*mine, *other]
    by_id = {each.text("id"): each for each in mine}
    others = {each.text("id"): each for each in other}
    return list(({**others, **by_id} if not override else {**by_id, **others}).values())


def _tasks(entries: dict[str, Place]) -> int:
    found = entries.get("numTasks") or entries.get("parallelism")
    return 1 if found is None else found.number()


def _fields(grouping: dict[str, Place]) -> Iterable[str]:
    if "args" not in grouping:
        raise grouping["type"].error("a FIELDS grouping needs args: the fields, such as [word]")
    return [each.as_text() for each in grouping["args"].items()]
