"""What a step keeps, as a record by which a changed flow is distinguished from the one that wrote the state.

>>> kept = StateSchema("n", "aggregate", "values", (StateField("word", "string"),), (StateField("n", "bigint", "count(*)", True),))
>>> from dataclasses import replace
>>> replace(kept, keys=(StateField("id", "int"),)).compatible_with(kept)
['its key was word string, and is now id int']
>>> StateSchema.from_json(kept.to_json()) == kept
True
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypedDict

Settings: TypeAlias = tuple[tuple[str, str], ...]
BOUND = ("fields", "partial_key", "all")
"""Groupings that bind tuples to tasks of a bolt, so that what a task keeps is of no use to another."""


class FieldJson(TypedDict):
    """A field in a manifest."""

    name: str
    type: str
    meaning: str
    addable: bool


class SchemaJson(TypedDict):
    """A schema in a manifest."""

    step: str
    node: str
    store: str
    keys: list[FieldJson]
    values: list[FieldJson]
    settings: dict[str, str]
    droppable: bool
    tasks: int


@dataclass(frozen=True)
class StateField:
    """A part of a key or of a value: its name, its type, and how it is computed, if it is.

    State that lacks an `addable` field can be read: nothing has been kept in it yet.
    """

    name: str
    type: str
    meaning: str = ""
    addable: bool = False

    def __str__(self) -> str:
        return f"{self.name}={self.meaning} {self.type}" if self.meaning else f"{self.name} {self.type}"


@dataclass(frozen=True)
class StateSchema:
    """The form of one store of a step.

    `node` is the kind of the step, `store` that of the store: "values" by key or "rows" in time. `settings` are those that change the
    meaning of what is kept. Fields may be given up if they are `droppable`. `tasks` is the number of tasks of a bolt, which has no key.
    """

    step: str
    node: str
    store: str
    keys: tuple[StateField, ...] = ()
    values: tuple[StateField, ...] = ()
    settings: Settings = ()
    droppable: bool = False
    tasks: int = 0

    def compatible_with(self, kept: StateSchema) -> list[str]:
        """The reasons why a step of this form cannot go on with what was kept; none when it can."""
        if self.node != kept.node:
            return [f"it was of the kind {kept.node}, and is now {self.node}"]
        return [*self._keys(kept), *self._store(kept), *self._settings(kept), *self._values(kept), *self._tasks(kept)]

    def _keys(self, kept: StateSchema) -> Iterator[str]:
        if self.keys != kept.keys:
            yield f"its key was {_listed(kept.keys)}, and is now {_listed(self.keys)}"

    def _store(self, kept: StateSchema) -> Iterator[str]:
        if self.store != kept.store:
            yield f"it kept {kept.store}, and now keeps {self.store}"

    def _settings(self, kept: StateSchema) -> Iterator[str]:
        now, before = dict(self.settings), dict(kept.settings)
        for name in dict.fromkeys([*before, *now]):
            if now.get(name) != before.get(name):
                yield f"its {name} was {before.get(name, 'not set')}, and is now {now.get(name, 'not set')}"

    def _values(self, kept: StateSchema) -> Iterator[str]:
        now, before = {f.name: f for f in self.values}, {f.name: f for f in kept.values}
        for name, field in before.items():
            if name not in now and not self.droppable:
                yield f"{field} was kept, and is gone"
            elif name in now and (now[name].type, now[name].meaning) != (field.type, field.meaning):
                yield f"{field} was kept, and is now {now[name]}"
        yield from (
            f"{f} is new, and nothing was kept for it" for n, f in now.items() if n not in before and not f.addable
        )
        if self._fixed and list(now) != list(before) and now.keys() == before.keys():
            yield "its fields are in another order"

    @property
    def _fixed(self) -> bool:
        return not self.droppable and not any(f.addable for f in self.values)

    def _tasks(self, kept: StateSchema) -> Iterator[str]:
        """Tuples that are bound to tasks go to others when the number changes, and do not find what was kept for them.

        Fewer tasks are fine when all tuples of one of the former go to the same one: hashes are taken modulo the number of tasks.
        """
        bound = [text for _, text in self.settings if text.partition("(")[0] in BOUND]
        if bound and kept.tasks and (self.tasks > kept.tasks or kept.tasks % self.tasks):
            yield (
                f"it had {kept.tasks} tasks, and has now {self.tasks}: {bound[0]} sends keys to other tasks than before, and not the state "
                f"with them. Keep what belongs to a key by key_by(...).process(...), or give it as many tasks as before"
            )

    def to_json(self) -> SchemaJson:
        """The form in a manifest."""
        return SchemaJson(
            step=self.step, node=self.node, store=self.store, keys=[_field_json(f) for f in self.keys],
            values=[_field_json(f) for f in self.values], settings=dict(self.settings), droppable=self.droppable, tasks=self.tasks,
        )  # fmt: skip

    @classmethod
    def from_json(cls, made: SchemaJson) -> StateSchema:
        """A schema from a manifest."""
        return cls(
            made["step"], made["node"], made["store"], tuple(StateField(**f) for f in made["keys"]),
            tuple(StateField(**f) for f in made["values"]), tuple(made["settings"].items()), made["droppable"], made["tasks"],
        )  # fmt: skip

    def __str__(self) -> str:
        by = f" by {_listed(self.keys)}" if self.keys else ""
        values = f": {_listed(self.values)}" if self.values else ""
        settings = "".join(f"; {name} {text}" for name, text in self.settings)
        return f"{self.node}{by}{values}{settings}"


def schemas_from_json(made: Mapping[str, SchemaJson]) -> dict[str, StateSchema]:
    """The schemas of a manifest, by store."""
    return {store: StateSchema.from_json(schema) for store, schema in made.items()}


def schemas_to_json(schemas: Mapping[str, StateSchema]) -> dict[str, SchemaJson]:
    """The form of schemas in a manifest, by store."""
    return {store: schema.to_json() for store, schema in schemas.items()}


def _field_json(field: StateField) -> FieldJson:
    return FieldJson(name=field.name, type=field.type, meaning=field.meaning, addable=field.addable)


def _listed(fields: tuple[StateField, ...]) -> str:
    return ", ".join(map(str, fields)) or "none"
