"""The parts of a pattern with their quantifiers, as they stand in sequences: what the automaton is compiled from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import permutations

from penstock.graph.patterns.tree import (
    Absence,
    Choice,
    Condition,
    Contiguity,
    Part,
    Permutation,
    Preference,
    Repeat,
    Sequence,
    Stage,
)


@dataclass(frozen=True, eq=False)
class Item:
    """A part with its quantifier, as it stands in a sequence."""

    body: Stage | tuple[tuple[Item, ...], ...]
    """A stage; a group of items in one sequence; or several sequences of which one is taken."""
    link: Contiguity = Contiguity.STRICT
    absence: bool | None = None
    """Whether it is an absence of the very next event; None where it is none."""
    optional: bool = False
    loops: bool = False
    repeats: bool = False
    least: int = 1
    most: int = 1
    inner: Contiguity = Contiguity.RELAXED
    greedy: bool = False
    until: Condition = None

    @property
    def is_waiting(self) -> bool:
        """Whether it is an absence up to the next part."""
        return self.absence is False

    @property
    def name(self) -> str:
        """The name of its stage."""
        return self.body.name if isinstance(self.body, Stage) else "group"


def items_of(part: Part) -> tuple[Item, ...]:
    """The items of a sequence, or of a part that stands alone."""
    if not isinstance(part, Sequence):
        return (_item(part, Contiguity.STRICT),)
    links = (Contiguity.STRICT, *part.links)
    return tuple(_item(each, link) for each, link in zip(part.parts, links, strict=True))


def _item(part: Part, link: Contiguity) -> Item:
    if isinstance(part, Absence):
        return Item(part.stage, link, absence=part.strict)
    if isinstance(part, Repeat):
        return _repeated(part, link)
    if isinstance(part, Stage):
        return Item(part, link)
    if isinstance(part, Permutation):
        orders = [Sequence(order, (Contiguity.RELAXED,) * (len(order) - 1)) for order in permutations(part.parts)]
        return Item(tuple(map(items_of, orders)), link)
    assert isinstance(part, Sequence | Choice), f"{part} has no automaton"
    return Item(tuple(map(items_of, part.parts)) if isinstance(part, Choice) else (items_of(part),), link)


def _repeated(part: Repeat, link: Contiguity) -> Item:
    optional = part.least == 0
    if isinstance(part.part, Repeat):
        return replace(_repeated(part.part, link), optional=True)
    made = replace(_item(part.part, link), optional=optional, inner=part.inner, until=part.until)
    greedy = part.preference is Preference.GREEDY
    if (part.least, part.most) == (0, 1):
        return made
    if part.most is None:
        many = max(part.least, 1)
        return replace(made, loops=True, least=many, most=many, greedy=greedy)
    return replace(made, repeats=True, least=max(part.least, 1), most=part.most, greedy=greedy)


def head_of(item: Item) -> str:
    """The name of the first stage inside a group."""
    while not isinstance(item.body, Stage):
        item = item.body[0][0]
    return item.name
