"""Steps over tables of which all rows are there at once, as in a bounded run; the compiler puts them in."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from penstock.graph.nodes.base import Inputs, Output, Settings
from penstock.graph.nodes.keyed import Keyed


@dataclass(frozen=True)
class WholeStep(Keyed):
    """A step over rows of which none comes or goes later, such as a join, a rank or a set operation: native, and it keeps nothing. `of` is the step as it is live."""

    of: Keyed = field(kw_only=True)
    keyed: ClassVar[bool] = False
    over_tables: ClassVar[bool] = True

    @property
    def kind(self) -> str:  # type: ignore[override]  # it is what the user's step is
        """What the step is."""
        return self.of.kind

    def check(self, given: Inputs) -> None:
        """The step has checked itself."""

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The main output of the step; nothing is late."""
        return replace(self.of, outputs=()).bound(given).outputs[:1]

    @property
    def hold(self) -> int:
        """As the step has it, so that those after it go by the same times."""
        return self.of.hold

    def keys_of(self, input: int) -> tuple[str, ...]:
        """The key fields of an input."""
        return self.of.keys_of(input)

    def settings(self) -> Settings:
        """The options of the step."""
        return self.of.settings()
