"""Looking at the streams of a job: the manager says what is looked at, the driver shows it, and forgets it when nobody renews the wish."""

from __future__ import annotations

import threading
import time
from dataclasses import asdict
from typing import Any, Literal

from penstock.errors import OptionError, UnknownName
from penstock.graph.expr import parse, type_of_expr
from penstock.graph.schema import schema_of
from penstock.graph.types import BOOLEAN
from penstock.jobs.manager.processes.directory import PROFILE, TRACE, JobDirectory
from penstock.live.sampling import MOST_WISHES, SampleWish

HOLDS = 10.0
"""For how many seconds a wish holds that is not renewed."""
_turn = threading.Lock()


def check_stream(plan: dict[str, Any], step: str, port: str, where: str) -> None:
    """Refuses a stream that the plan does not have, and a condition that does not fit it; the condition is an expression, never code."""
    outputs = {(s["name"], o["port"]): o["schema"] for s in plan.get("steps", ()) for o in s["outputs"]}
    if (step, port) not in outputs:
        raise UnknownName(f"there is no stream {port!r} of a step {step!r}")
    if where and type_of_expr(parse(where), schema_of(outputs[step, port])) != BOOLEAN:
        raise OptionError(f"expected a condition, which is true or false, got {where!r}")


def renew(directory: JobDirectory, step: str, port: str, where: str) -> None:
    """Looks at a stream for some seconds more."""
    now = time.time()
    with _turn:
        before = directory.watch()
        mine = (step, port, where)
        others = [w for w in _wishes(before) if w["until"] > now and (w["step"], w["port"], w["where"]) != mine]
        if len(others) >= MOST_WISHES:
            raise OptionError(f"at most {MOST_WISHES} streams of a job are looked at at once; close a page")
        more = {name: until for name, until in before.items() if name != "wishes"}
        directory.write_watch([*others, asdict(SampleWish(step, port, where, now + HOLDS))], **more)


Kind = Literal["trace", "profile"]
_FILES: dict[Kind, str] = {"trace": TRACE, "profile": PROFILE}


def renew_kind(directory: JobDirectory, kind: Kind) -> None:
    """Has messages traced, or the driver and its workers profiled, for some seconds more."""
    with _turn:
        before = directory.watch()
        wishes = _wishes(before)
        before.pop("wishes", None)
        directory.write_watch(wishes, **{**before, kind: time.time() + HOLDS})


def seen_kind(directory: JobDirectory, kind: Kind) -> dict[str, Any]:
    """What was traced or profiled last."""
    return directory.shown(_FILES[kind])


def seen(directory: JobDirectory, step: str, port: str, where: str) -> dict[str, Any]:
    """The newest sample of a stream: its batch and its records."""
    found = directory.samples()
    for each in _named(found.get("samples")):
        if (each["step"], each["port"], each["where"]) == (step, port, where):
            return {"batch": found.get("batch"), "rows": each.get("rows", [])}
    return {"batch": None, "rows": []}


def _wishes(watch: dict[str, object]) -> list[dict[str, Any]]:
    """The streams that are looked at; the file may have been written by anybody who has the directory."""
    return [each for each in _named(watch.get("wishes")) if isinstance(each.get("until"), int | float)]


def _named(found: object) -> list[dict[str, Any]]:
    """Those of a list that name a stream."""
    named = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    return [each for each in named if {"step", "port", "where"} <= each.keys()]
