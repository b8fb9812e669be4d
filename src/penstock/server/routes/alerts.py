"""Alerts: their rules, and what fires."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from penstock.errors import UnknownName
from penstock.jobs.manager.alerts.center import LONGEST_SILENCE, AlertCenter
from penstock.jobs.manager.alerts.rule import AlertRule, Measure, Severity
from penstock.server.bodies import Body
from penstock.server.guard import Administrator, Operator, Viewer
from penstock.server.pages import Paging
from penstock.server.tags import current_tag

router = APIRouter()
AlertName = Annotated[str, Path(description="the name of the alert")]


class AlertBody(Body):
    """A rule: what is measured, above which value and for how many seconds it is a matter, of which jobs, and who gets a notice."""

    measure: Measure = Field(description="what is measured")
    above: float = Field(ge=0.0, lt=1e15, description="it fires when the measure is above this")
    seconds: float = Field(0.0, ge=0.0, le=604_800.0, description="and has been for so long")
    jobs: str = Field("*", max_length=200, description="a pattern of the names of jobs; *: all")
    to: list[Annotated[str, Field(max_length=2_000)]] = Field(
        ["log"], min_length=1, max_length=10, description="who gets a notice: log, a URL, or mailto: and an address"
    )
    severity: Severity = Field("warning", description="how grave it is")


def _center(request: Request) -> AlertCenter:
    found: AlertCenter = request.app.state.alerts
    return found


Alerts = Annotated[AlertCenter, Depends(_center)]


class AlertView(BaseModel):
    """A rule as it is shown: of targets by HTTP the host alone."""

    name: str
    measure: Measure
    above: float
    seconds: float
    jobs: str
    to: list[str]
    severity: Severity
    silent_until: float = 0.0


class NoticeView(BaseModel):
    """What fires."""

    model_config = ConfigDict(extra="allow")
    rule: str
    job: str
    since: float
    text: str


class AlertPage(BaseModel):
    """Rules by name, and what fires."""

    rules: list[AlertView]
    firing: list[NoticeView]


@router.get("/alerts", summary="The rules of alerts, and what fires")
def list_alerts(alerts: Alerts, asker: Viewer, page: Paging) -> AlertPage:
    """Of targets by HTTP the host alone is shown."""
    rules = sorted(alerts.rules(), key=lambda rule: rule.name)
    firing = [NoticeView(**asdict(notice), text=str(notice)) for notice in alerts.firing()]
    return AlertPage(rules=[_shown(rule) for rule in page.of(rules, lambda rule: rule.name)], firing=firing)


@router.get("/alerts/{name}", summary="Show an alert")
def show_alert(alerts: Alerts, asker: Viewer, name: AlertName, request: Request, response: Response) -> AlertView:
    """Its rule, with its ETag."""
    found = [rule for rule in alerts.rules() if rule.name == name]
    if not found:
        raise UnknownName(f"there is no alert {name!r}")
    response.headers["ETag"] = f'"{current_tag(request, "alerts", name)}"'
    return _shown(found[0])


@router.put("/alerts/{name}", summary="Set an alert")
def put_alert(alerts: Alerts, asker: Administrator, name: AlertName, body: AlertBody) -> AlertView:
    """In place of one of the same name."""
    rule = AlertRule(name, body.measure, body.above, body.seconds, body.jobs, tuple(body.to), body.severity)
    alerts.put(rule, asker.owner)
    return _shown(rule)


def _shown(rule: AlertRule) -> AlertView:
    return AlertView(**{**asdict(rule), "to": rule.shown_targets})


class SilenceBody(Body):
    """For how many seconds no notices are sent; 0 ends the silence."""

    seconds: float = Field(ge=0.0, le=LONGEST_SILENCE, description="how long, from now on; 0 ends the silence")


@router.post("/alerts/{name}/silence", summary="Tell nobody of an alert for a while")
def silence_alert(alerts: Alerts, asker: Operator, name: AlertName, body: SilenceBody) -> AlertView:
    """It is looked at and shown all the same."""
    return _shown(alerts.silence(name, body.seconds, asker.owner))


@router.delete("/alerts/{name}", status_code=204, summary="Forget an alert")
def remove_alert(alerts: Alerts, asker: Administrator, name: AlertName) -> None:
    """It is told to nobody any more."""
    alerts.remove(name, asker.owner)
