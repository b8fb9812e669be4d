"""The rules, patterns and standing queries of a flow: those that it was written with, and those of the topic from which it takes changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, get_args

from penstock.errors import FlowError, OptionError, PenstockError, UnknownName
from penstock.jobs.manager.insight.ruled_steps import QUERIES
from penstock.jobs.manager.insight.topics import MARK
from penstock.jobs.manager.processes.directory import JobDirectory
from penstock.jobs.rule_topic import PatternOptions, RuleTopic, StoredRule
from penstock.jobs.sql.query_status import QueryStatus, statuses_of
from penstock.jobs.sql.query_topic import QueryTopic
from penstock.log import Log

Op = Literal["add", "change", "remove", "enable", "disable"]
OPS: tuple[Op, ...] = get_args(Op)


def described(directory: JobDirectory, progress: Mapping[str, object]) -> list[dict[str, Any]]:
    """The rule sets of a job as they are now, with what is known of their runs."""
    return [_described(directory, each, progress) for each in _sets(directory)]


def _sets(directory: JobDirectory) -> list[dict[str, Any]]:
    found = directory.plan().get("rules")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _described(directory: JobDirectory, found: dict[str, Any], progress: Mapping[str, object]) -> dict[str, Any]:
    error, stored = "", dict[str, StoredRule]()
    try:
        stored = _stored(found)
    except (PenstockError, OSError, ValueError) as failure:
        error = str(failure)
    runs, written = _runs(progress, found["step"]), found["written"]
    statuses = _statuses(directory) if found["kind"] == QUERIES else {}
    rows = [
        _row(name, written.get(name), stored.get(name), runs.get(name), statuses.get(name))
        for name in dict.fromkeys([*written, *stored, *statuses])
    ]
    shown = [row for row in rows if not row["removed"]]
    about = {"step": found["step"], "kind": found["kind"], "topic": found["topic"], "error": error}
    return {**about, "changeable": bool(found["topic"]), "rules": shown}


def _row(
    name: str,
    written: str | None,
    stored: StoredRule | None,
    runs: Mapping[str, object] | None,
    status: QueryStatus | None,
) -> dict[str, Any]:
    """A rule as the topic leaves it, or as it was written in the flow."""
    made = {
        "rule": name,
        "version": 1,
        "enabled": True,
        "text": written or "",
        "by": "",
        "at": "",
        "removed": False,
        "written": written is not None,
    }
    if stored is not None:
        own = asdict(stored)
        made |= {key: own[key] for key in ("version", "enabled", "by", "at", "removed")}
        made["text"] = stored.text or made["text"]
    more = {} if status is None else {"status": asdict(status)}
    return {**made, **more, "runs": dict(runs) if runs else None}


def _stored(found: Mapping[str, Any]) -> dict[str, StoredRule]:
    """The last state of each rule of the topic, those that were removed among them: one that the flow was written with may be."""
    if not found["topic"] or not (Path(found["path"]) / MARK).is_file():
        return {}
    with Log(Path(found["path"])) as log:
        return {each.rule: each for each in _topic(found, log).history()}


def _topic(found: Mapping[str, Any], log: Log) -> RuleTopic:
    return (QueryTopic if found["kind"] == QUERIES else RuleTopic)(log, found["topic"])


def _runs(progress: Mapping[str, object], step: str) -> dict[str, Any]:
    """The runs that are under way, by pattern."""
    last = progress.get("last")
    active = last.get("active_runs") if isinstance(last, dict) else None
    found = active.get(step) if isinstance(active, dict) else None
    return dict(found) if isinstance(found, dict) else {}


def _statuses(directory: JobDirectory) -> dict[str, QueryStatus]:
    try:
        return statuses_of(directory.checkpoint)
    except (PenstockError, OSError):
        return {}


def change(
    directory: JobDirectory, step: str, op: Op, rule: str, text: str = "", runs: str = "", *, by: str
) -> StoredRule:
    """Changes a rule, pattern or query of a job by its topic; it takes effect with one of the next batches."""
    found = next((each for each in _sets(directory) if each["step"] == step), None)
    if found is None:
        raise UnknownName(f"the job has no step {step!r} with rules")
    if not found["topic"]:
        raise OptionError(f"step {step!r} takes no changes: give it changes= of a rule_topic, and submit the job again")
    if not (Path(found["path"]) / MARK).is_file():
        raise OptionError(f"the log with topic {found['topic']!r} is not there yet; wait until the job runs")
    with Log(Path(found["path"])) as log:
        return _changed(_topic(found, log), op, rule, text, PatternOptions(runs), rule in found["written"], by)


def _changed(
    topic: RuleTopic, op: Op, rule: str, text: str, options: PatternOptions, written: bool, by: str
) -> StoredRule:
    if isinstance(topic, QueryTopic) and op not in ("add", "remove"):
        raise OptionError(f"a standing query is added and removed, not {op}d; drop it, and add it with another text")
    if op == "add":
        if written:
            raise FlowError(f"{topic.noun} {rule!r} is in the flow already; change it")
        return topic.put(text, by) if isinstance(topic, QueryTopic) else topic.add(rule, text, by)
    if op == "change":
        return topic.change(rule, text, by, options, written=written)
    if op == "remove":
        return topic.remove(rule, by, options, written=written)
    return topic.enable(rule, by, options, enabled=op == "enable", written=written)
