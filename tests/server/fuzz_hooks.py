"""How Schemathesis asks this API: a key is used once, and every second request is about something that is there."""

from __future__ import annotations

import itertools
import os
from typing import Any

import schemathesis
from hypothesis import strategies as st
from schemathesis import Case, HookContext

from penstock.jobs.manager.bundle import pack

_TURN = itertools.count()
THERE = {"name": "count", "log": os.environ.get("FUZZ_LOG", "none"), "topic": "orders"}


@schemathesis.hook
def before_call(context: HookContext, case: Case[Any], kwargs: dict[str, object]) -> None:
    """Changes a request before it is sent."""
    turn = next(_TURN)
    headers: Any = case.headers or {}
    if "Idempotency-Key" in headers:
        headers["Idempotency-Key"] = f"fuzz-{turn}"
    if turn % 2 and case.path_parameters:
        known = {name: THERE[name] for name in case.path_parameters if name in THERE}
        case.path_parameters = {**case.path_parameters, **known}


schemathesis.openapi.media_type("application/zip", st.binary(max_size=2_000) | st.just(pack([])))
