"""A job: a bundle of code, the flow in it, the options of its runs, and whether it is to run."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, replace
from pathlib import PurePosixPath
from typing import Literal, get_args

from penstock.errors import OptionError
from penstock.graph.run import RunSpec

Wish = Literal["running", "paused", "stopped"]
"""What a job is to be. One that is paused keeps its checkpoint and its turn, and reads nothing."""
WISHES: tuple[Wish, ...] = get_args(Wish)
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_CHECKPOINT = re.compile(r"checkpoint(-[0-9]{1,9})?")
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


TRIAL = 300.0
"""For how many seconds a new version of a job may take to come up, if nothing else is said."""


@dataclass(frozen=True)
class JobVersion:
    """What a job runs: the flow in a bundle, the options of its runs, and the checkpoint in the job's directory."""

    bundle: str
    target: str
    options: dict[str, object] = field(default_factory=dict)
    checkpoint: str = "checkpoint"

    def __post_init__(self) -> None:
        if not _DIGEST.fullmatch(self.bundle):
            raise OptionError(f"expected the SHA-256 of a bundle, 64 hexadecimal digits, got {self.bundle!r}")
        if not _CHECKPOINT.fullmatch(self.checkpoint):
            raise OptionError(f"expected the name of a checkpoint, got {self.checkpoint!r}")
        _check_target(self.target)
        _check_options(self.options)


@dataclass(frozen=True)
class Job:
    """What is wanted. `generation` grows with each change that needs another driver; `is_forced` ends the driver without its last batch.

    After an upgrade `previous` is the version to go back to, unless the new one has come up within `trial` seconds. It runs in a pool, when there are
    `cores` and `memory` (in MiB) for it there; 0 is what Spark takes by itself. `revision` grows with every change. `why` is the reason of a manager that
    has it stopped.
    """

    name: str
    owner: str
    bundle: str
    target: str
    options: dict[str, object] = field(default_factory=dict)
    wish: Wish = "running"
    generation: int = 1
    is_forced: bool = False
    created: float = 0.0
    checkpoint: str = "checkpoint"
    previous: JobVersion | None = None
    trial: float = TRIAL
    pool: str = "default"
    cores: int = 0
    memory: int = 0
    priority: int = 0
    revision: int = 0
    why: str = ""

    def __post_init__(self) -> None:
        checked_name(self.name)
        if not (0 <= self.cores <= 100_000 and 0 <= self.memory <= 1 << 30 and abs(self.priority) <= 1_000):
            raise OptionError(
                f"a job asks for up to 100,000 cores and 1 PiB, with a priority of -1,000 to 1,000; got {self.cores}, {self.memory} MiB, {self.priority}"
            )
        if self.wish not in WISHES:
            raise OptionError(f"expected a job to be {', '.join(WISHES)}, got {self.wish!r}")
        if not 1.0 <= self.trial <= 86_400.0:
            raise OptionError(f"a new version has 1 to 86,400 seconds to come up, got {self.trial:g}")
        _ = self.version

    @property
    def version(self) -> JobVersion:
        """What it runs."""
        return JobVersion(self.bundle, self.target, self.options, self.checkpoint)

    def upgraded(
        self, bundle: str, target: str = "", options: dict[str, object] | None = None, trial: float = TRIAL
    ) -> Job:
        """The job with another version, which has a checkpoint of its own. Options that are given replace those of the same name.

        >>> job = Job("count", "ada", "0" * 64, "count.py").upgraded("1" * 64)
        >>> job.checkpoint, job.previous.checkpoint
        ('checkpoint-2', 'checkpoint')
        """
        return self.renewed(
            wish="running",
            is_forced=False,
            why="",
            bundle=bundle,
            target=target or self.target,
            options={**self.options, **(options or {})},
            checkpoint=f"checkpoint-{self.generation + 1}",
            previous=self.version,
            trial=trial,
        )

    def gone_back(self) -> Job:
        """The job with the version before; another upgrade may follow."""
        return self if self.previous is None else replace(self, **vars(self.previous), previous=None)

    def wished(self, wish: Wish, *, is_forced: bool = False, why: str = "") -> Job:
        """The job with another wish."""
        return replace(self, wish=wish, is_forced=is_forced, why=why)

    def renewed(self, **changes: object) -> Job:
        """The job with changes that need another driver."""
        return replace(self, generation=self.generation + 1, **changes)  # type: ignore[arg-type]  # checked by __post_init__

    def to_json(self) -> bytes:
        """The job as JSON, which `from_json` reads."""
        said = asdict(self)
        if not self.why:
            del said["why"]  # supervisors of the version before, which run on, do not know it
        return json.dumps(said, sort_keys=True).encode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Job:
        """The job of a JSON object.

        >>> made = Job("count", "ada", "0" * 64, "count.py")
        >>> Job.from_json(made.to_json()) == made
        True
        """
        found = json.loads(text)
        before = found.pop("previous", None)
        return cls(**found, previous=None if before is None else JobVersion(**before))


def _check_target(target: str) -> None:
    """A file of the bundle, or a module: nothing outside."""
    path = PurePosixPath(target.partition(":")[0])
    if not target.isprintable() or path.is_absolute() or ".." in path.parts or "\\" in target:
        raise OptionError(
            f"expected a file of the bundle or a module, such as flows/count.py:flow, got {target[:200]!r}"
        )


def _check_options(options: dict[str, object]) -> None:
    wrong = sorted(set(options) & set(_OURS))
    if wrong:
        raise OptionError(f"the manager of jobs sets {', '.join(wrong)} itself; leave it out")
    RunSpec.from_dict(options)
