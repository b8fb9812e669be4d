"""What routes ask for."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, HTTPException, Path, Request

from penstock.jobs.manager.access.tokens import Identity
from penstock.jobs.manager.manager import JobState, Manager
from penstock.server.guard import identity


async def manager_of(request: Request) -> Manager:
    """The manager that the application serves."""
    found: Manager = request.app.state.manager
    return found


Jobs = Annotated[Manager, Depends(manager_of)]
PoolName = Annotated[str, Path(description="the name of the pool")]
TokenId = Annotated[str, Path(description="the id of the token, as the list of tokens has it")]
TopicName = Annotated[str, Path(description="the name of the topic")]
JobName = Annotated[str, Path(description="the name of the job")]


def own_job(manager: Jobs, asker: Annotated[Identity, Depends(identity)], name: JobName) -> JobState:
    """A job, for who may change it; 403 otherwise."""
    state = manager.state(name)
    if not asker.may_change(state.job.owner):
        raise HTTPException(
            403, f"job {name!r} belongs to {state.job.owner}, and the role {asker.role} may not change it"
        )
    return state


OwnJob = Annotated[JobState, Depends(own_job)]
