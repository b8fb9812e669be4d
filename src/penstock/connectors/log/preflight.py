"""Whether the topic that a source reads is in the log."""

from __future__ import annotations

import shlex
from pathlib import Path

from penstock.connectors.preflight import Options, Preflight
from penstock.errors import SetupError, nearest
from penstock.log import Log


def check_topic(asked: Preflight) -> None:
    """The topic must be there, unless a sink of the flow makes it."""
    if written_topic(asked.options) in asked.made:
        return
    topic, path = str(asked.options["topic"]), str(asked.options["path"])
    topics = _topics(path)
    if topic not in topics:
        raise SetupError(
            f"{asked.step!r} reads the topic {topic!r}, and the log at {path} has none of that name; {nearest(topic, topics)}. "
            f"Make it: penstock topics create {topic} --log {shlex.quote(path)}"
        )


def _topics(path: str) -> list[str]:
    if not Path(path).is_dir():
        return []
    with Log(path) as log:
        return log.topics()


def written_topic(options: Options) -> str:
    """The topic that a sink makes."""
    return f"log {Path(str(options['path'])).absolute()} {options['topic']}"
