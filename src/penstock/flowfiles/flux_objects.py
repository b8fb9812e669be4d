"""Objects of a Flux file: classes by name, made with arguments, properties, methods and factories."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from penstock.errors import FlowError, PenstockError, nearest
from penstock.flowfiles.flux_shell import FluxShellBolt, FluxShellSpout, LogInfoBolt
from penstock.flowfiles.references import referenced
from penstock.flowfiles.yaml_text import Place

OBJECT = ("id", "className", "constructorArgs", "properties", "configMethods", "factory", "factoryArgs")
_OURS = {
    "org.apache.storm.flux.wrappers.bolts.FluxShellBolt": FluxShellBolt,
    "org.apache.storm.flux.wrappers.spouts.FluxShellSpout": FluxShellSpout,
    "org.apache.storm.flux.wrappers.bolts.LogInfoBolt": LogInfoBolt,
}
"""Flux's own wrappers, which have a twin here."""
_JAVA = re.compile(r"(org|com|net|io|java|javax|backtype|storm|edu|de|me)\.[\w.$]*[A-Z][\w$]*")


class FluxObjects:
    """The objects of a file by id; one may use those above it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.found: dict[str, Any] = {}

    def add(self, place: Place, more: tuple[str, ...] = ()) -> Any:
        """Makes an object and keeps it under its id."""
        entries = place.checked((*OBJECT, *more), ("id",))
        name = entries["id"].as_text()
        if name in self.found:
            raise entries["id"].error(f"the id {name!r} appears twice")
        self.found[name] = self.made(place, entries)
        return self.found[name]

    def made(self, place: Place, entries: dict[str, Place]) -> Any:
        """An object, with its properties set and its methods called."""
        if "className" not in entries:
            raise place.error("expected the key 'className' here: module.Class or module:Class")
        made = self._called(place, entries)
        if isinstance(made, FluxShellBolt | FluxShellSpout):
            made.work_in(self.folder)
        for each in entries["properties"].items() if "properties" in entries else ():
            self._set(made, each)
        for each in entries["configMethods"].items() if "configMethods" in entries else ():
            self._configure(made, each)
        return made

    def _called(self, place: Place, entries: dict[str, Place]) -> Any:
        maker = class_of(entries["className"])
        if "factory" in entries:
            maker = self._method(maker, entries["factory"])
        args = entries.get("factoryArgs" if "factory" in entries else "constructorArgs")
        values, named = self._arguments(args)
        try:
            return maker(*values, **named)
        except PenstockError as error:
            raise place.error(str(error)) from error
        except Exception as error:
            raise place.error(
                f"{entries['className'].as_text()} cannot be made: {type(error).__name__}: {error}"
            ) from error

    def _arguments(self, place: Place | None) -> tuple[list[Any], dict[str, Any]]:
        """Arguments in order, or by name, which Python has and Java has not."""
        if place is None or place.is_null:
            return [], {}
        if place.is_mapping:
            return [], {name: self.value(each) for name, each in place.entries().items()}
        return [self.value(each) for each in place.items()], {}

    def value(self, place: Place) -> Any:
        """A value, `{ref: id}` for an object, or `{reflist: [id, ...]}` for several."""
        keys = set(place.entries()) if place.is_mapping else set()
        if keys == {"ref"}:
            return self.reference(place.entries()["ref"])
        if keys == {"reflist"}:
            return [self.reference(each) for each in place.entries()["reflist"].items()]
        return place.plain()

    def reference(self, place: Place) -> Any:
        """An object above."""
        name = place.as_text()
        if name not in self.found:
            raise place.error(
                f"no object {name!r} above; what is referred to must be declared first; {nearest(name, self.found)}"
            )
        return self.found[name]

    def _set(self, made: Any, place: Place) -> None:
        entries = place.checked(("name", "value", "ref", "reflist"), ("name",))
        values = [key for key in entries if key != "name"]
        if len(values) != 1:
            raise place.error(f"expected one of value, ref and reflist, got {', '.join(values) or 'none'}")
        name, given = entries["name"].as_text(), entries[values[0]]
        value = given.plain() if values[0] == "value" else self.value(_only(place, values[0]))
        setter = getattr(made, f"set{name[:1].upper()}{name[1:]}", None) or getattr(made, f"set_{_snake(name)}", None)
        if callable(setter):
            setter(value)
        else:
            setattr(made, name if hasattr(made, name) or not hasattr(made, _snake(name)) else _snake(name), value)

    def _configure(self, made: Any, place: Place) -> None:
        entries = place.checked(("name", "args"), ("name",))
        values, named = self._arguments(entries.get("args"))
        method = self._method(made, entries["name"])
        try:
            method(*values, **named)
        except Exception as error:
            raise place.error(f"{entries['name'].as_text()} failed: {type(error).__name__}: {error}") from error

    def _method(self, of: Any, place: Place) -> Any:
        name = place.as_text()
        found = getattr(of, name, None) or getattr(of, _snake(name), None)
        if not callable(found):
            methods = [n for n in dir(of) if not n.startswith("_")]
            raise place.error(f"{of!r} has no method {name!r}; {nearest(name, methods)}")
        return found


def _only(place: Place, key: str) -> Place:
    """A mapping with one of its keys alone."""
    import yaml

    kept = [(k, v) for k, v in place.node.value if k.value == key]
    return place.at(yaml.MappingNode(place.node.tag, kept, place.node.start_mark, place.node.end_mark))


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda m: f"_{m[1].lower()}", name)


def class_of(place: Place) -> Any:
    """The class that a name stands for: `module.Class`, `module:Class`, or one of Flux's own.

    Raises:
        FlowError: it is a class of Java, or there is none of that name.
    """
    name = place.as_text()
    if name in _OURS:
        return _OURS[name]
    text = name if ":" in name else ":".join(name.rsplit(".", 1))
    try:
        return referenced(text)
    except FlowError as error:
        if _JAVA.fullmatch(name):
            raise place.error(
                f"{name!r} is a class of Java, which does not run here; write it in Python (className: module.Class), or run it as a "
                f"program with FluxShellBolt"
            ) from None
        raise place.error(f"expected a class such as module.Class or module:Class, got {name!r}: {error}") from None
