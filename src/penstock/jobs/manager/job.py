"""A job: a bundle of code, the flow in it, the options of its runs, and whether it is to run."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, replace
from typing import Literal, get_args

from penstock.errors import OptionError
from penstock.graph.run import RunSpec

Wish = Literal["running", "paused", "stopped"]
"""What a job is to be. One that is paused keeps its checkpoint and its turn, and reads nothing."""
WISHES: tuple[Wish, ...] = get_args(Wish)
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_OURS = ("checkpoint", "json_logs", "dead_letters", "by_value")
"""Options that the manager sets itself."""


def checked_name(name: str) -> str:
    """The name of a job, which is also that of its directory.

    >>> checked_name("word-count.2")
    'word-count.2'
    """
    if not _NAME.fullmatch(name):
        raise OptionError(
            f"the name of a job has 1 to 63 characters, of a to z, 0 to 9, '.', '_' and '-', the first a letter or a digit; got {name!r}"
        )
    return name


@dataclass(frozen=True)
class Job:
    """What is wanted. `generation` grows with each change that needs another driver; `is_forced` ends the driver without its last batch."""

    name: str
    owner: str
    bundle: str
    target: str
    options: dict[str, object] = field(default_factory=dict)
    wish: Wish = "running"
    generation: int = 1
    is_forced: bool = False
    created: float = 0.0

    def __post_init__(self) -> None:
        checked_name(self.name)
        if not _DIGEST.fullmatch(self.bundle):
            raise OptionError(f"expected the SHA-256 of a bundle, 64 hexadecimal digits, got {self.bundle!r}")
        if self.wish not in WISHES:
            raise OptionError(f"expected a job to be {', '.join(WISHES)}, got {self.wish!r}")
        _check_options(self.options)

    def wished(self, wish: Wish, *, is_forced: bool = False) -> Job:
        """The job with another wish."""
        return replace(self, wish=wish, is_forced=is_forced)

    def renewed(self, **changes: object) -> Job:
        """The job with changes that need another driver."""
        return replace(self, generation=self.generation + 1, **changes)  # type: ignore[arg-type]  # checked by __post_init__

    def to_json(self) -> bytes:
        """The job as JSON, which `from_json` reads."""
        return json.dumps(asdict(self), sort_keys=True).encode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Job:
        """The job of a JSON object.

        >>> made = Job("count", "ada", "0" * 64, "count.py")
        >>> Job.from_json(made.to_json()) == made
        True
        """
        return cls(**json.loads(text))


def _check_options(options: dict[str, object]) -> None:
    wrong = sorted(set(options) & set(_OURS))
    if wrong:
        raise OptionError(f"the manager of jobs sets {', '.join(wrong)} itself; leave it out")
    RunSpec.from_dict(options)
