"""Signing in to the console: a link that works once, or a token, opens the session of a browser."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Request, Response
from pydantic import Field

from penstock.jobs.manager.access.sessions import LINK, SESSION
from penstock.server.bodies import Body
from penstock.server.depends import Jobs
from penstock.server.guard import COOKIE, Known, cookies_of

router = APIRouter()


class SessionBody(Body):
    """What opens a session: the code of a link, or a token."""

    code: str = Field("", max_length=200, description="the code of a link, which works once")
    token: str = Field("", max_length=200, description="a token, in place of a code")


@router.post("/sign-in-links", status_code=201, summary="Make a link that signs a browser in, once")
def make_link(manager: Jobs, asker: Known) -> dict[str, object]:
    """The path of the console with a code behind the `#`, which browsers send to nobody. It signs in as who asks."""
    code = manager.sessions.make_link(asker.token)
    manager.records.note(asker.owner, "link", asker.token)
    return {"path": f"/#/sign-in/{code}", "seconds": LINK}


@router.post("/session", status_code=204, summary="Sign a browser in")
def open_session(manager: Jobs, body: SessionBody, request: Request, response: Response) -> None:
    """Needs no token: the code of a link, or a token, is in the body. The session is in a cookie that scripts cannot read."""
    made = manager.sessions.open_link(body.code) if body.code else manager.sessions.open_token(body.token)
    if made is None:
        raise HTTPException(401, "this link was used, is too old or is none; `penstock console` makes a new one")
    found = manager.sessions.identity(made)
    manager.records.note(found.owner if found else "", "sign-in", found.token if found else "")
    set_session(response, made, is_secure=request.url.scheme == "https")


def set_session(response: Response, session: str, *, is_secure: bool) -> None:
    """Has a browser keep a session, which scripts cannot read and other sites do not send."""
    response.set_cookie(
        COOKIE, session, max_age=int(SESSION), httponly=True, samesite="strict", secure=is_secure, path="/"
    )


@router.delete("/session", status_code=204, summary="Sign a browser out")
def close_session(manager: Jobs, asker: Known, request: Request, response: Response) -> None:
    """The session ends at once, on the server too."""
    manager.sessions.close(cookies_of(request.headers.get("cookie", "")).get(COOKIE, ""))
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
