"""Signing in by an OpenID Connect provider: the way there, and the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from starlette.responses import RedirectResponse

from penstock.server.depends import Jobs
from penstock.server.guard import cookies_of
from penstock.server.oidc.pending import HOLDS, PendingSignIns, SignInRefused
from penstock.server.routes.signing_in import set_session

if TYPE_CHECKING:
    from penstock.server.oidc.provider import Provider

router = APIRouter()
BROWSER = "penstock_oidc"
"""The cookie of a browser that was sent to the provider; it comes back from another site, so it cannot be strict."""
CALLBACK = "/api/v1/oidc/callback"


class OidcSignIn:
    """The provider of a server, and those who are on their way there and back."""

    def __init__(self, provider: Provider) -> None:
        self.provider, self.pending = provider, PendingSignIns()


def _offered(request: Request) -> OidcSignIn:
    found: OidcSignIn | None = request.app.state.oidc
    if found is None:
        raise HTTPException(404, "this server has no OpenID Connect provider; `penstock server --oidc` names one")
    return found


Offered = Annotated[OidcSignIn, Depends(_offered)]


@router.get("/oidc", summary="Whether an OpenID Connect provider signs browsers in")
def offered(request: Request) -> dict[str, str]:
    """The host of the provider; empty where there is none. Needs no token."""
    found: OidcSignIn | None = request.app.state.oidc
    return {"provider": "" if found is None else found.provider.settings.provider}


@router.get("/oidc/start", status_code=303, summary="Sign in at the provider", response_class=RedirectResponse)
def start(way: Offered, request: Request) -> RedirectResponse:
    """Sends a browser to the provider. Needs no token."""
    sign_in = way.pending.begin(way.provider.settings.redirect or f"{_base(request)}{CALLBACK}")
    answer = RedirectResponse(way.provider.sign_in_url(sign_in), 303)
    answer.set_cookie(
        BROWSER,
        sign_in.browser,
        max_age=int(HOLDS),
        httponly=True,
        samesite="lax",
        secure=sign_in.redirect.startswith("https:"),
        path=CALLBACK,
    )
    return answer


@router.get("/oidc/callback", status_code=303, summary="Come back from the provider", response_class=RedirectResponse)
def callback(
    manager: Jobs,
    way: Offered,
    request: Request,
    state: Annotated[str, Query(max_length=200, description="what the provider was sent, and sends back")] = "",
    code: Annotated[str, Query(max_length=4_000, description="what the provider gives out for who signed in")] = "",
    iss: Annotated[str, Query(max_length=2_000, description="the issuer, where the provider names it")] = "",
) -> RedirectResponse:
    """Opens the session of who was signed in, with the role that their claims give. Needs no token."""
    browser = cookies_of(request.headers.get("cookie", "")).get(BROWSER, "")
    sign_in = way.pending.end(state, browser)
    settings = way.provider.settings
    if sign_in is None or not code or iss not in ("", settings.issuer):
        raise HTTPException(401, "this sign-in was not begun here, is too old, or was refused; begin again at /")
    try:
        found = settings.identity(way.provider.claims(code, sign_in))
    except SignInRefused as error:
        raise HTTPException(401, f"the sign-in does not hold; begin again at / ({error})") from None
    if found is None:
        raise HTTPException(403, "the provider knows you, and nobody has given you a role here; ask an administrator")
    made = manager.sessions.open_as(found.owner, found.role)
    manager.records.note(found.owner, "sign-in", settings.provider, found.role)
    answer = RedirectResponse("/", 303)
    set_session(answer, made, is_secure=sign_in.redirect.startswith("https:"))
    answer.delete_cookie(BROWSER, path=CALLBACK, httponly=True, samesite="lax")
    return answer


def _base(request: Request) -> str:
    """The address that the browser asked for; its host has passed the gate."""
    found = urlsplit(str(request.url))
    return f"{found.scheme}://{found.netloc}"
