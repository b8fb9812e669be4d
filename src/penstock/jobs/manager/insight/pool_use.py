"""How full pools are: what the jobs in them take, by owner, and which jobs wait for what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from penstock.jobs.manager.manager import JobState
from penstock.jobs.manager.pools import DEFAULT, Pool, needs_of


def pool_uses(states: list[JobState], pools: Mapping[str, Pool]) -> list[dict[str, Any]]:
    """Each pool with its limits, what is taken of it, and its queue, the next job first."""
    names = sorted({DEFAULT, *pools, *(state.job.pool for state in states)})
    return [_use(pools.get(name, Pool(name)), [s for s in states if s.job.pool == name]) for name in names]


def _use(pool: Pool, states: list[JobState]) -> dict[str, Any]:
    placed = [state for state in states if state.is_supervised and state.job.wish == "running" and not state.is_through]
    waits = [state for state in states if state.phase == "queued" and state.job.wish == "running"]
    owners: dict[str, Counter[str]] = {}
    for state in placed:
        needs = needs_of(state.job)
        owners.setdefault(state.job.owner, Counter()).update(cores=needs.cores, memory=needs.memory, jobs=1)
    used = sum(owners.values(), Counter[str]())
    waits.sort(key=lambda state: (-state.job.priority, state.job.created, state.job.name))
    return {
        **vars(pool),
        "used": {"cores": used["cores"], "memory": used["memory"], "jobs": used["jobs"]},
        "owners": {owner: dict(found) for owner, found in sorted(owners.items())},
        "queue": [{"job": s.job.name, "owner": s.job.owner, "priority": s.job.priority, "why": s.waits} for s in waits],
    }
