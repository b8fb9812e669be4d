"""A server of jobs for tests, with small drivers: `python serving.py ROOT`; its database is that of the environment."""

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
    serve(Manager(Path(sys.argv[1]), DRIVER, shared_database(os.environ[DATABASE])), Listening(port=0), tell)
