"""Whether the topic that a source reads is in the log, and whether those who read and write it see the log."""

from __future__ import annotations

import shlex
from contextlib import suppress
from pathlib import Path

from penstock.connectors.preflight import Missing, Options, Preflight, Submission
from penstock.errors import SetupError, nearest
from penstock.log import Log, TopicExists


def check_topic(asked: Preflight) -> None:
    """The topic must be there, unless a sink of the flow makes it, and on the machine that runs the tasks."""
    _check_master(asked, "reads", "topic", "kafka")
    if written_topic(asked.options) in asked.made:
        return
    topic, path = str(asked.options["topic"]), str(asked.options["path"])
    make_if_asked(asked.options)
    topics = _topics(path)
    if topic not in topics:
        raise Missing(
            f"{asked.step!r} reads the topic {topic!r}, and the log at {path} has none of that name; {nearest(topic, topics)}. "
            f"Make it: penstock topics create {topic} --log {shlex.quote(str(Path(path).absolute()))}"
        )


def check_sent(asked: Submission) -> str:
    """A relative path is a log of the job alone, which has no topics but those that its flow makes."""
    topic, path = str(asked.options["topic"]), Path(str(asked.options["path"]))
    if path.is_absolute() or asked.options.get("create") or written_topic(asked.options) in asked.made:
        return ""
    return (
        f"{asked.step!r} reads the topic {topic!r} of the log {path}, and the job runs in a directory of its own. Name the log by its absolute "
        f"path, ps.topic({topic!r}, ..., path={str(path.absolute())!r}), or set PENSTOCK_LOG for the server"
    )


def make_if_asked(options: Options) -> None:
    """Makes the topic of a source that says so: one that others write as soon as they come."""
    if options.get("create"):
        with Log(str(options["path"])) as log, suppress(TopicExists):
            log.create_topic(str(options["topic"]))


def check_written(asked: Preflight) -> None:
    """The log must be on the machine that runs the tasks."""
    _check_master(asked, "writes", "write_topic", "write_kafka")


def _check_master(asked: Preflight, verb: str, before: str, after: str) -> None:
    """Refuses a cluster: the log is a directory of one machine, and has no server that others could ask."""
    if asked.is_on_one_machine:
        return
    topic = str(asked.options["topic"])
    raise SetupError(
        f"{asked.step!r} {verb} the topic {topic!r} of the embedded log, which is a directory of this machine ({asked.options['path']}), and the "
        f"workers of {asked.master} are others. On a cluster the log is Kafka: write ps.{after}({topic!r}, ..., servers='HOST:9092') "
        f"in place of ps.{before}({topic!r}, ...), or run with --master 'local[*]'"
    )


def _topics(path: str) -> list[str]:
    if not Path(path).is_dir():
        return []
    with Log(path) as log:
        return log.topics()


def written_topic(options: Options) -> str:
    """The topic that a sink makes."""
    return f"log {Path(str(options['path'])).absolute()} {options['topic']}"
