"""A stand-in for the workers' Python on the driver.

Spark starts Python by one command on all machines, and also in the driver, where it plans sources that are written in Python. Workers that take theirs from an archive
start `environment/bin/python` in the directory where Spark unpacks archives. So the driver's JVM works in a directory in which this path leads to the driver's
own Python, which goes on in the directory of the user. Java resolves relative paths by `user.dir`, which stays the user's.
"""

from __future__ import annotations

import atexit
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from penstock.temporary import LockedDirectory

OPTIONS = "spark.driver.extraJavaOptions"


def make_stand_in(command: str) -> Path:
    """A directory in which a relative command runs this Python; it goes when the process ends.

    Args:
        command: The path of the workers' Python, such as `environment/bin/python`.

    Returns:
        The directory.
    """
    made = LockedDirectory.make("driver")
    atexit.register(made.close)
    script = made.path / command
    script.parent.mkdir(parents=True)
    script.write_text(f'#!/bin/sh\ncd {shlex.quote(str(Path.cwd()))} && exec {shlex.quote(sys.executable)} "$@"\n')
    script.chmod(0o700)
    return made.path


def in_user_directory(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of a JVM that works in another directory, and resolves relative paths in the user's."""
    options = f"{shlex.quote(f'-Duser.dir={Path.cwd()}')} {settings.get(OPTIONS, '')}".strip()
    return {**settings, OPTIONS: options}
