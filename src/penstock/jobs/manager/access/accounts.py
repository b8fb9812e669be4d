"""The users of the machine whose rights jobs have: one for each owner, where the manager is root.

The driver of such a job is a process of that user. It reaches its own directory, and neither the manager's database and tokens nor the jobs of others. What the driver wrote
is read and changed with the rights of that user too: a link that it put there leads no further than the driver itself gets.
"""

from __future__ import annotations

import ctypes
import os
import platform
import pwd
import re
import resource
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.errors import OptionError, SetupError

SHARED = 0o3770
"""The directory of a job: root's, and the group's of the user, who can make files there, and neither replace nor remove those of root."""
PASSED = 0o711
"""Directories above it: to be passed, not to be listed."""
MOST_PROCESSES = 4_096
"""How many processes and threads a user may have: a job that forks without end stops itself, and nobody else."""
_SET_GROUPS = {"x86_64": 116, "aarch64": 159}
"""The number of the system call, which is for one thread; that of the C library is for all of them."""
_KEPT = re.compile(
    r"PATH|LANG|LANGUAGE|LC_[A-Z]+|TZ|VIRTUAL_ENV|PYTHON[A-Z]+|JAVA_HOME|JDK_JAVA_OPTIONS|SPARK_LOCAL_IP"
)
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Account:
    """A user of the machine."""

    name: str
    uid: int
    gid: int

    @classmethod
    def named(cls, name: str) -> Account:
        """The user of a name; raises OptionError for one that is not there, and for root."""
        try:
            found = pwd.getpwnam(name)
        except (KeyError, ValueError):
            raise OptionError(f"--run-as: expected a user of this machine, got {name!r}") from None
        if found.pw_uid == 0 or found.pw_gid == 0:
            raise OptionError(f"--run-as: expected a user who is not root, got {name!r}")
        return cls(name, found.pw_uid, found.pw_gid)

    def process(self, home: Path, environment: Mapping[str, str]) -> dict[str, Any]:
        """What has `subprocess` start a process of this user, with nothing of the environment that may be a secret of the server."""
        kept = {name: value for name, value in environment.items() if _KEPT.fullmatch(name)}
        own = {"HOME": str(home), "USER": self.name, "LOGNAME": self.name, "PYTHONSAFEPATH": "1"}
        return {"user": self.uid, "group": self.gid, "extra_groups": [], "umask": 0o077, "env": {**kept, **own}}


@dataclass(frozen=True)
class Accounts:
    """Whose rights the jobs of each owner have; without any, all have those of the manager."""

    by_owner: Mapping[str, Account] = field(default_factory=dict)

    @classmethod
    def of(cls, texts: Iterable[str]) -> Accounts:
        """The users that `--run-as OWNER=USER` names.

        Raises:
            OptionError: it is written otherwise, there is no such user, or two owners share a user or a group.
            SetupError: this process is not root, who alone can start processes of others.
        """
        pairs = [text.partition("=") for text in texts]
        made = {owner: Account.named(name) for owner, _, name in pairs if owner and name}
        if len(made) != len(pairs):
            raise OptionError("--run-as: expected OWNER=USER, each owner once, such as --run-as ada=ada-jobs")
        for ids in ([a.uid for a in made.values()], [a.gid for a in made.values()]):
            if len(set(ids)) != len(ids):
                raise OptionError("--run-as: expected a user and a group of its own for each owner, got one for two")
        if made and (os.geteuid() != 0 or platform.machine() not in _SET_GROUPS):
            raise SetupError(
                "--run-as: only root can start jobs of other users, on Linux with x86-64 or ARM64; without it all jobs have "
                "the rights of this user, and can read what the others keep"
            )
        return cls(made)

    def check_python(self) -> None:
        """Refuses users who cannot reach the Python that is to run their jobs."""
        python = Path(sys.executable).resolve()
        for account in self.by_owner.values():
            with acting_as(account):
                try:
                    python.open("rb").close()
                except OSError:
                    raise SetupError(
                        f"--run-as: {account.name} cannot read {python}, which runs the jobs; install Python and Penstock where all users reach them"
                    ) from None

    def of_owner(self, owner: str) -> Account | None:
        """Whose rights the jobs of an owner have, None for those of the manager; raises OptionError for an owner who has no user."""
        if self.by_owner and owner not in self.by_owner:
            raise OptionError(
                f"no user of the machine is there for the jobs of {owner}; start the server with --run-as {owner}=USER"
            )
        return self.by_owner.get(owner)


@contextmanager
def acting_as(account: Account | None) -> Iterator[None]:
    """Has this thread, and no other, reach the files that a user reaches; as who it is, if None."""
    if account is None:
        yield
        return
    groups = os.getgroups()
    _set_groups([])
    _LIBC.setfsgid(account.gid)
    _LIBC.setfsuid(account.uid)
    try:
        yield
    finally:
        _LIBC.setfsuid(os.geteuid())
        _LIBC.setfsgid(os.getegid())
        _set_groups(groups)


def _set_groups(groups: list[int]) -> None:
    made = (ctypes.c_uint32 * len(groups))(*groups)
    if _LIBC.syscall(_SET_GROUPS[platform.machine()], len(groups), made) != 0:
        raise OSError(ctypes.get_errno(), "the groups of a thread cannot be set")


def share(directory: Path, account: Account) -> None:
    """Has a user make files in a directory of root's."""
    os.chown(directory, 0, account.gid)
    directory.chmod(SHARED)


def pass_through(*directories: Path) -> None:
    """Has users reach what is theirs below directories that they cannot list."""
    for each in directories:
        each.chmod(PASSED)


def give_to(account: Account, directory: Path) -> None:
    """Has a user read all that is below a directory, and change nothing."""
    for found in (directory, *directory.rglob("*")):
        os.chown(found, 0, account.gid, follow_symlinks=False)
        found.chmod(0o750 if found.is_dir() else 0o640)


def limit_process(*, has_account: bool) -> None:
    """The limits of a new process: it leaves no image of its memory, in which secrets are; with a user of its own it forks only so often."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if has_account:
        resource.setrlimit(resource.RLIMIT_NPROC, (MOST_PROCESSES, MOST_PROCESSES))
