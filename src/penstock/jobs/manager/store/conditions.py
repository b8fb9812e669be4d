"""The tags of what can be changed, and the one that a request expects: it is compared in the transaction that makes the change, so that of several who looked at the same only one changes it."""

from __future__ import annotations

import hashlib
import json
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

from penstock.errors import PenstockError
from penstock.jobs.manager.job import Job

Kind = Literal["jobs", "pools", "alerts"]


class ChangedSince(PenstockError):
    """What a request is to change is no longer as its sender has seen it."""


@dataclass(frozen=True)
class Expected:
    """Under which tags an object is to be changed; `*` is any."""

    kind: Kind
    name: str
    tags: frozenset[str]

    @classmethod
    def of(cls, kind: Kind, name: str, header: str) -> Expected:
        """What stands in an If-Match. A tag of a weak comparison never fits, as RFC 9110 has it.

        >>> sorted(Expected.of("jobs", "count", '"a", "b", W/"c"').tags)
        ['W/"c', 'a', 'b']
        """
        return cls(kind, name, frozenset(part.strip().strip('"') for part in header.split(",")))

    def check(self, tag: str) -> None:
        """Raises ChangedSince unless the object is there and has such a tag."""
        if not tag or not self.tags & {tag, "*"}:
            raise ChangedSince(f"{self.kind.removesuffix('s')} {self.name!r} has changed since; look at it again")


EXPECTED: ContextVar[Expected | None] = ContextVar("penstock_expected", default=None)
"""What the request expects that this thread works on."""


def check_expected(kind: Kind, name: str, found: object) -> None:
    """In a transaction that is to change `found`, None where there is none: raises ChangedSince when the request at work expects something else."""
    expected = EXPECTED.get()
    if expected is not None and (expected.kind, expected.name) == (kind, name):
        expected.check("" if found is None else tag_of(found))


def tag_of(found: object) -> str:
    """The tag of a job, or of anything that JSON can say.

    >>> tag_of({"a": 1}) == tag_of({"a": 1}), tag_of({"a": 1}) == tag_of({"a": 2})
    (True, False)
    """
    text = found.to_json() if isinstance(found, Job) else json.dumps(found, sort_keys=True, default=str).encode()
    return hashlib.sha256(text).hexdigest()[:16]
