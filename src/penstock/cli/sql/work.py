"""What `penstock sql` does once its options are read."""

from __future__ import annotations

import sys
from pathlib import Path

from penstock.cli.sql.asking import ask_flow
from penstock.cli.sql.runner import Runner
from penstock.cli.sql.shell import Shell
from penstock.errors import OptionError
from penstock.jobs.sql.answers import AskLimits
from penstock.jobs.sql.session import SqlSession

__all__ = ["AskLimits", "ask_flow", "run_statements"]


def run_statements(files: list[Path], texts: list[str], limits: AskLimits, *, as_json: bool) -> None:
    """Runs the statements of files, then those of texts; without any the shell begins, or standard input is read.

    Raises:
        OptionError: a file cannot be read.
    """
    runner = Runner(SqlSession(), as_json=as_json, limits=limits)
    for each in files:
        runner.run(_text(each), "" if str(each) == "-" else each.name)
    for text in texts:
        runner.run(text)
    if not (files or texts):
        Shell(runner).loop() if sys.stdin.isatty() else runner.run(sys.stdin.read())


def _text(path: Path) -> str:
    if str(path) == "-":
        return sys.stdin.read()
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else f"no text in UTF-8: {error.reason}"
        raise OptionError(f"{path} cannot be read ({said})") from None
