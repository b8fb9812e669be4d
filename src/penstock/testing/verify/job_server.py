"""The server of `penstock verify jobs`: `python -m penstock.testing.verify.job_server ROOT`; the environment may name its database."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from penstock.jobs.manager.manager import Manager
from penstock.jobs.manager.processes.environment import DATABASE
from penstock.jobs.manager.store.postgres_database import PostgresDatabase
from penstock.server.serve import Listening, serve

COMMAND = (sys.executable, "-m", "penstock.testing.verify.job_driver")


def main() -> None:
    """Serves until it is killed."""
    url = os.environ.get(DATABASE)
    shared = PostgresDatabase.of(url, is_seen=False) if url else None
    serve(Manager(Path(sys.argv[1]), COMMAND, shared), Listening(port=0), lambda text: None)


if __name__ == "__main__":
    main()
