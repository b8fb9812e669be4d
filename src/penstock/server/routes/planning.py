"""A flow as text: what it would do, before it runs."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field

from penstock.errors import OptionError
from penstock.jobs.manager.planning import MOST_TEXT, plan_text, plan_version, source_of
from penstock.server.bodies import Body, described
from penstock.server.depends import JobName, Jobs, OwnJob
from penstock.server.guard import Submitter

router = APIRouter()
_FILE = re.compile(r"^[A-Za-z_][A-Za-z0-9_-]{0,62}\.(py|sql|yaml|yml)$")


class FlowText(Body):
    """A file of a flow: Python, SQL or YAML."""

    file: Annotated[str, described(_FILE.pattern)] = Field(description="its name, such as count.sql")
    text: str = Field(max_length=MOST_TEXT, description="the text of the file")


class VersionText(Body):
    """Another text of the file that a job runs."""

    text: str = Field(max_length=MOST_TEXT, description="the text of the file")


@router.post("/plans", summary="What a flow would do")
def make_plan(manager: Jobs, asker: Submitter, body: FlowText) -> dict[str, Any]:
    """Builds the flow in a process of its own, as submitting it would, and runs nothing; its bundle can then be submitted."""
    if not _FILE.fullmatch(body.file):
        raise OptionError(
            "expected the name of a file, letters, digits, '_' and '-', ending in .py, .sql, .yaml or .yml"
        )
    made = plan_text(manager, body.file, body.text, asker.owner)
    manager.records.note(asker.owner, "plan", str(made["bundle"]))
    return made


@router.get("/jobs/{name}/source", summary="The file that a job runs")
def read_source(manager: Jobs, own: OwnJob, name: JobName) -> dict[str, Any]:
    """Its text, for those who may change the job."""
    return source_of(manager, own.course.followed(own.job).version)


@router.post("/jobs/{name}/plans", summary="What another version of a job would do")
def make_version_plan(manager: Jobs, asker: Submitter, own: OwnJob, name: JobName, body: VersionText) -> dict[str, Any]:
    """Builds the job's flow with another text of its file, the other files of its bundle beside it; the bundle that is made can then be the upgrade."""
    made = plan_version(manager, own.course.followed(own.job).version, body.text, own.job.owner)
    manager.records.note(asker.owner, "plan", name, str(made["bundle"]))
    return made
