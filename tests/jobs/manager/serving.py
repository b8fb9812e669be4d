"""A server of jobs for tests, with small drivers: `python serving.py ROOT [HOST]`; its database is that of the environment."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from penstock.cli.tools.server import shared_database
from penstock.jobs.manager.manager import Manager
from penstock.jobs.manager.processes.environment import DATABASE
from penstock.server.serve import Listening, serve
from tests.jobs.manager.conftest import DRIVER


def tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    root, *hosts = sys.argv[1:]
    listening = Listening(hosts[0], 0, tuple(hosts), is_open=True) if hosts else Listening(port=0)
    serve(Manager(Path(root), DRIVER, shared_database(os.environ[DATABASE])), listening, tell)
