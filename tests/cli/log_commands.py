"""What the tests of the log's commands use: the command line in this process, and in processes of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from penstock.log import Log
from tests.command_line import make_app

COMMAND = [sys.executable, "-m", "penstock.cli.main"]


class Commands:
    """Runs commands on one log."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.environment = {**os.environ, "PENSTOCK_LOG": str(path), "COLUMNS": "500"}

    def __call__(self, *arguments: object, code: int = 0) -> Result:
        """Run a command here; it must end with this code and without a traceback."""
        done = CliRunner().invoke(make_app(), list(map(str, arguments)), env=self.environment)
        assert done.exit_code == code, done.output
        assert "Traceback" not in done.output
        return done

    def json(self, *arguments: object) -> Any:
        """What a command says with --json."""
        return json.loads(self(*arguments, "--json").stdout)

    def lines(self, *arguments: object) -> list[str]:
        """What a command prints."""
        return self(*arguments).stdout.splitlines()

    @contextmanager
    def started(self, *arguments: object) -> Iterator[subprocess.Popen[str]]:
        """A command in a process of its own, ended at the latest with the block."""
        command = [*COMMAND, *map(str, arguments)]
        pipe = subprocess.PIPE
        with subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=self.environment
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def run(self, *arguments: object, given: str = "") -> subprocess.CompletedProcess[str]:
        """A command in a process of its own, to its end."""
        with self.started(*arguments) as process:
            out, err = process.communicate(given, timeout=300)
            return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def fill(self, topic: str, values: list[str], **options: Any) -> None:
        """Append values."""
        with Log(self.path) as log, log.producer() as producer:
            producer.send_many(topic, [value.encode() for value in values], **options)


def said(text: str) -> str:
    """A message without its frame and line breaks."""
    return " ".join(text.replace("│", " ").split())
