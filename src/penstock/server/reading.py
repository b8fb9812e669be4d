"""What holds for how the API is read: HEAD is answered as GET is, and a query that a route does not know is refused."""

from __future__ import annotations

from fastapi import HTTPException, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_FROM_ELSEWHERE = frozenset({"/api/v1/oidc/callback"})
"""What a provider adds to these is its own matter."""


def has_head(path: str) -> bool:
    """Whether a path of the API that has GET has HEAD: streams have none, since they end when who asks goes.

    >>> has_head("/api/v1/jobs"), has_head("/api/v1/live/jobs")
    (True, False)
    """
    return not path.startswith("/api/v1/live/")


class HeadRequests:
    """Answers HEAD as GET, without the content. Before the gate, which then asks for what GET needs."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request."""
        is_head = scope["type"] == "http" and scope["method"] == "HEAD" and scope["path"].startswith("/api/")
        if not is_head or not has_head(scope["path"]):
            await self.app(scope, receive, send)
            return

        async def sent(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        await self.app({**scope, "method": "GET"}, receive, sent)


async def check_query(request: Request) -> None:
    """Refuses a parameter that the route does not know, or one that is given twice: a filter that is misspelt would be none."""
    route = request.scope.get("route")
    if not isinstance(route, APIRoute) or request.url.path in _FROM_ELSEWHERE:
        return
    known = _queries(route.dependant)
    asked = [name for name, _ in request.query_params.multi_items()]
    wrong = sorted(set(asked) - set(known))
    if wrong:
        taken = f"expected {', '.join(known)}" if known else "there are none here"
        raise HTTPException(422, f"query.{wrong[0][:80]}: no such parameter; {taken}")
    twice = sorted({name for name in asked if asked.count(name) > 1})
    if twice:
        raise HTTPException(422, f"query.{twice[0]}: given twice; give one value")


def _queries(needs: Dependant) -> list[str]:
    """The names of the parameters that a route takes, by itself or by what it depends on."""
    own = [field.alias for field in needs.query_params]
    return list(dict.fromkeys([*own, *(name for each in needs.dependencies for name in _queries(each))]))
