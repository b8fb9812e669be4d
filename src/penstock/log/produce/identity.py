"""Named producers: a name keeps its id for ever, and each new producer of that name fences the one before it."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from penstock.log.errors import BadSetting, ProducerFenced
from penstock.log.storage.files import FileLock, make_dir, read_json, write_json

UNNAMED = 1 << 61
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")


@dataclass(frozen=True)
class Identity:
    """Who a producer is; `path` is where its name is registered, None for one without a name."""

    producer: int
    epoch: int
    path: Path | None = None

    def check(self) -> None:
        """Refuse when a newer producer of the name is there."""
        if self.path is None:
            return
        now = read_json(self.path)
        if now is None or (now["producer"], now["epoch"]) != (self.producer, self.epoch):
            raise ProducerFenced(
                f"producer {self.path.stem!r} of epoch {self.epoch} has been replaced by a newer one of the same name; close this one"
            )


def anonymous() -> Identity:
    """A producer without a name: an id that nobody else has, and that differs from those with a name."""
    return Identity(UNNAMED | secrets.randbits(61), 0)


def register(root: Path, name: str) -> Identity:
    """The next producer of this name; those before it may not write any more."""
    if not _NAME.fullmatch(name):
        raise BadSetting(f"a producer name has 1 to 200 of A-Z a-z 0-9 . _ - and no dot in front, got {name!r}")
    make_dir(root)
    path = root / f"{name}.json"
    with FileLock(root / ".lock"):
        before = read_json(path) or {"producer": secrets.randbits(61), "epoch": -1}
        now = Identity(before["producer"], before["epoch"] + 1, path)
        write_json(path, {"producer": now.producer, "epoch": now.epoch})
    return now
