"""One option of a run: its kind, its default, what it does, and its names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field
from typing import Generic, TypeVar

from penstock.errors import OptionError
from penstock.graph.run.kinds import Json, Kind

T = TypeVar("T")
_KEY = "option"


@dataclass(frozen=True)
class Option(Generic[T]):
    """An option as it is declared; all that shows or reads it (command line, environment, JSON, documentation) asks here.

    `name` is that of the field, of the keyword and in JSON. `flag` is the one on the command line, empty where it has none.
    """

    name: str
    kind: Kind[T]
    default: T
    help: str
    flag: str = ""
    shown: str = ""
    """The default as people read it, where the value itself says little."""
    is_live: bool = False
    """Whether it means nothing for a run over bounded data, which refuses it."""

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the environment that set it, the first wins.

        >>> from penstock.graph.run import run_options
        >>> run_options()["duration"].variables
        ('PENSTOCK_RUN_FOR', 'PENSTOCK_RUN_DURATION')
        """
        own = self.flag.removeprefix("--").replace("-", "_") or self.name
        return tuple(dict.fromkeys(f"PENSTOCK_RUN_{n.upper()}" for n in (own, self.name)))

    @property
    def label(self) -> str:
        """The option as messages name it: as on the command line, if it is there."""
        return self.flag or self.name

    def read(self, value: object) -> T:
        """The value of the option; raises OptionError for what it cannot be."""
        try:
            return self.kind.read(value)
        except ValueError as error:
            raise OptionError(f"{self.label}: {error}, got {value!r}") from None

    def read_text(self, text: str) -> T:
        """The value from one text, such as a variable of the environment; several names have blanks between."""
        return self.read(text.split() if self.kind.is_repeated else text)

    def write(self, value: T) -> Json:
        """The value as JSON has it."""
        return self.kind.write(value)


def option(
    default: T,
    kind: Kind[T],
    help: str,
    *,
    flag: str | None = None,
    shown: str = "",
    is_live: bool = False,
) -> T:
    """A field of a dataclass that is an option; `flag=""` keeps it off the command line."""
    meta: Mapping[str, object] = {_KEY: (kind, help, flag, shown, is_live)}
    made: object = (
        field(default_factory=default.copy, metadata=meta)
        if isinstance(default, dict)
        else field(default=default, metadata=meta)
    )
    return made  # type: ignore[return-value]  # what a dataclass makes of it is the default


def option_of(declared: Field[T]) -> Option[T]:
    """The option that a field declares."""
    kind, about, flag, shown, is_live = declared.metadata[_KEY]
    own = f"--{declared.name.replace('_', '-')}" if flag is None else flag
    default = declared.default_factory() if callable(declared.default_factory) else declared.default
    return Option(declared.name, kind, default, about, own, shown, is_live)
