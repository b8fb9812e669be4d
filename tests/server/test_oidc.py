"""Signing in by an OpenID Connect provider, from the first redirect to the session; and every token that must not sign in."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest

from penstock.errors import OptionError, SetupError
from penstock.jobs.manager.manager import Manager
from penstock.server.oidc import pending, provider
from penstock.server.oidc.settings import OidcSettings, RoleRule, read_secret, role_rules
from penstock.server.serve import Listening, serving
from tests.jobs.manager.conftest import DRIVER, ending
from tests.server.conftest import Service
from tests.server.provider import CLIENT, SECRET, Claims, TestProvider, new_key
from tests.server.provider import provider as running_provider

ROLES = ("groups=admins:admin", "groups=streams:developer", "department=sales:viewer")


@pytest.fixture(scope="module")
def idp() -> Iterator[TestProvider]:
    with running_provider() as found:
        yield found


@pytest.fixture(scope="module")
def signing(idp: TestProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    manager = Manager(tmp_path_factory.mktemp("oidc") / "data", DRIVER)
    settings = OidcSettings(idp.url, CLIENT, role_rules(ROLES), secret=SECRET)
    with serving(manager, Listening(port=0, oidc=settings)) as url, ending(manager):
        yield Service(url, manager)


@pytest.fixture(autouse=True)
def as_it_was(idp: TestProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    idp.claims, idp.sign, idp.issuer = {}, None, ""
    monkeypatch.setattr(provider, "PAUSE", -1.0)


def get(url: str, cookie: str = "") -> tuple[int, dict[str, str], list[str], bytes]:
    """A GET as a browser does it that follows nothing: status, headers, cookies that are set, body."""
    found = urlsplit(url)
    connection = http.client.HTTPConnection(found.netloc, timeout=300)
    path = f"{found.path}?{found.query}" if found.query else found.path
    connection.request("GET", path, headers={"Cookie": cookie} if cookie else {})
    answer = connection.getresponse()
    set_cookies = [value for name, value in answer.getheaders() if name.lower() == "set-cookie"]
    made = answer.status, {k.lower(): v for k, v in answer.getheaders()}, set_cookies, answer.read()
    connection.close()
    return made


def cookie_of(lines: list[str], name: str) -> str:
    for line in lines:
        found = SimpleCookie(line)
        if name in found and found[name].value:
            return f"{name}={found[name].value}"
    return ""


def back(signing: Service) -> tuple[str, str]:
    """The way to the provider and back: the address that it sends the browser to, and the browser's cookie."""
    status, headers, cookies, _ = get(f"{signing.url}/api/v1/oidc/start")
    assert status == 303
    status, headers, _, _ = get(headers["location"])
    assert status == 302
    return headers["location"], cookie_of(cookies, "penstock_oidc")


def sign_in(signing: Service) -> tuple[int, str, bytes]:
    """The answer to who comes back, and the session that it opened."""
    status, _, cookies, body = get(*back(signing))
    return status, cookie_of(cookies, "penstock_session"), body


def test_who_is_signed_in_by_the_provider_has_a_session_with_the_role_of_its_claims(
    signing: Service, idp: TestProvider
) -> None:
    status, headers, cookies, _ = get(f"{signing.url}/api/v1/oidc/start")
    asked = {k: v[0] for k, v in parse_qs(urlsplit(headers["location"]).query).items()}
    assert (status, asked["response_type"], asked["code_challenge_method"]) == (303, "code", "S256")
    assert asked["redirect_uri"] == f"{signing.url}/api/v1/oidc/callback"
    assert all("HttpOnly" in line and "samesite=lax" in line.lower() for line in cookies)
    status, headers, cookies, _ = get(*back(signing))
    assert (status, headers["location"]) == (303, "/")
    line = next(line for line in cookies if line.startswith("penstock_session="))
    assert "HttpOnly" in line
    assert "samesite=strict" in line.lower()
    session = cookie_of(cookies, "penstock_session")
    _, _, body = signing.ask("GET", "/api/v1/me", headers={"Cookie": session})
    assert json.loads(body) == {"owner": "ada@example.org", "role": "developer"}
    (entry,) = signing.json("GET", "/api/v1/audit?limit=1", signing.token("admin"))["entries"]
    assert (entry["actor"], entry["action"], entry["detail"]) == ("ada@example.org", "sign-in", "developer")
    assert signing.json("GET", "/api/v1/oidc") == {"provider": "127.0.0.1"}


def test_an_administrator_ends_the_session_of_who_was_signed_in(signing: Service) -> None:
    _, session, _ = sign_in(signing)
    newest = signing.json("GET", "/api/v1/tokens", signing.token("admin"))["tokens"]
    token = next(each for each in newest if each["owner"] == "ada@example.org" and each["revoked"] is None)
    assert token["expires"] > time.time()
    assert signing.ask("DELETE", f"/api/v1/tokens/{token['id']}", signing.token("admin"))[0] == 204
    assert signing.ask("GET", "/api/v1/me", headers={"Cookie": session})[0] == 401


@pytest.mark.parametrize(
    ("claims", "role"),
    [
        ({"groups": ["streams", "admins"]}, "admin"),
        ({"groups": "streams"}, "developer"),
        ({"groups": [], "department": "sales"}, "viewer"),
        ({"groups": [], "department": ["sales"]}, "viewer"),
    ],
)
def test_claims_give_roles_and_the_first_rule_counts(
    signing: Service, idp: TestProvider, claims: Claims, role: str
) -> None:
    idp.claims = claims
    _, session, _ = sign_in(signing)
    assert json.loads(signing.ask("GET", "/api/v1/me", headers={"Cookie": session})[2])["role"] == role


@pytest.mark.parametrize(
    "claims",
    [
        {"groups": ["other"]},
        {"groups": None},
        {"groups": "streams and more"},
        {"email_verified": False},
        {"email_verified": "true"},
        {"email_verified": None},
        {"email": None},
        {"email": "../../etc/passwd"},
        {"email": "ada@example.org\nadmin"},
        {"email": ["ada@example.org"]},
        {"email": "<script>@example.org"},
    ],
)
def test_who_has_no_role_or_no_name_that_holds_is_refused(signing: Service, idp: TestProvider, claims: Claims) -> None:
    idp.claims = claims
    status, session, body = sign_in(signing)
    assert (status, session) == (403, "")
    assert b"ask an administrator" in body


def _none(claims: Claims) -> str:
    return jwt.encode(claims, None, "none", {"kid": "one"})  # type: ignore[arg-type]  # what no provider should do


def _forged_header(claims: Claims) -> str:
    """The key of the attacker, in the header of the token."""
    key = new_key()
    jwk = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
    return jwt.encode(claims, key, "RS256", {"kid": "one", "jwk": jwk, "jku": "http://127.0.0.1:1/jwks"})


def _hs256_with_the_public_key(idp: TestProvider) -> Callable[[Claims], str]:
    def sign(claims: Claims) -> str:
        import base64
        import hashlib
        import hmac

        def part(value: Any) -> bytes:
            return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=")

        text = part({"alg": "HS256", "typ": "JWT", "kid": "one"}) + b"." + part(claims)
        digest = hmac.new(idp.public_pem(), text, hashlib.sha256).digest()
        return (text + b"." + base64.urlsafe_b64encode(digest).rstrip(b"=")).decode()

    return sign


WRONG: dict[str, tuple[Claims, Callable[[TestProvider], Callable[[Claims], str]] | None]] = {
    "issuer": ({"iss": "https://evil.example"}, None),
    "audience": ({"aud": "another"}, None),
    "audiences without azp": ({"aud": [CLIENT, "another"]}, None),
    "azp": ({"aud": [CLIENT, "another"], "azp": "another"}, None),
    "nonce": ({"nonce": "of another sign-in"}, None),
    "no nonce": ({"nonce": None}, None),
    "expired": ({"exp": int(time.time()) - 600, "iat": int(time.time()) - 900}, None),
    "no exp": ({"exp": None}, None),
    "no sub": ({"sub": None}, None),
    "not yet": ({"nbf": int(time.time()) + 3_600}, None),
    "alg none": ({}, lambda idp: _none),
    "HS256 with the public key": ({}, _hs256_with_the_public_key),
    "unknown kid": ({}, lambda idp: lambda claims: idp.signed(claims, "nobody")),
    "no kid": ({}, lambda idp: lambda claims: jwt.encode(claims, idp.keys["one"], "RS256")),
    "another key of the same kid": (
        {},
        lambda idp: lambda claims: jwt.encode(claims, new_key(), "RS256", {"kid": "one"}),
    ),
    "a key in the header": ({}, lambda idp: _forged_header),
    "no token": ({}, lambda idp: lambda claims: ""),
    "rubbish": ({}, lambda idp: lambda claims: "a.b.c"),
    "a changed claim": ({}, lambda idp: lambda claims: _changed(idp.signed(claims))),
}


def _changed(token: str) -> str:
    head, body, tail = token.split(".")
    other = jwt.utils.base64url_decode(body).replace(b'"streams"', b'"admins"')
    return ".".join((head, jwt.utils.base64url_encode(other).decode(), tail))


@pytest.mark.parametrize("wrong", WRONG)
def test_a_token_that_is_wrong_signs_nobody_in(signing: Service, idp: TestProvider, wrong: str) -> None:
    claims, sign = WRONG[wrong]
    idp.claims = claims
    idp.sign = sign(idp) if sign is not None else None
    status, session, body = sign_in(signing)
    assert (status, session) == (401, ""), body
    assert json.loads(body)["detail"].startswith("the sign-in does not hold")


def test_several_audiences_with_this_client_as_the_authorized_party_sign_in(
    signing: Service, idp: TestProvider
) -> None:
    idp.claims = {"aud": [CLIENT, "another"], "azp": CLIENT}
    assert sign_in(signing)[0] == 303


def test_keys_are_rotated_and_old_ones_end(signing: Service, idp: TestProvider) -> None:
    old = idp.keys["one"]
    assert sign_in(signing)[0] == 303
    idp.keys = {"one": old, "two": new_key()}
    assert sign_in(signing)[0] == 303  # by the new key, which was not known before
    idp.keys = {"two": idp.keys["two"]}
    idp.sign = lambda claims: jwt.encode(claims, new_key(), "RS256", {"kid": "three"})
    assert sign_in(signing)[0] == 401  # keys are fetched for it, and the first is gone
    idp.sign = lambda claims: jwt.encode(claims, old, "RS256", {"kid": "one"})
    assert sign_in(signing)[0] == 401
    idp.keys = {"one": old}


def test_keys_that_nobody_has_are_asked_for_now_and_then_only(
    signing: Service, idp: TestProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sign_in(signing)[0] == 303
    monkeypatch.setattr(provider, "PAUSE", 3_600.0)
    before = idp.fetched
    idp.sign = lambda claims: jwt.encode(claims, new_key(), "RS256", {"kid": "guess"})
    assert [sign_in(signing)[0] for _ in range(3)] == [401, 401, 401]
    assert idp.fetched == before


def test_a_way_back_is_taken_once_by_the_browser_that_was_sent(signing: Service, idp: TestProvider) -> None:
    address, cookie = back(signing)
    assert get(address)[0] == 401, "without the cookie: somebody else's sign-in"
    address, cookie = back(signing)
    _, other = back(signing)
    assert get(address, other)[0] == 401, "the cookie of another browser"
    address, cookie = back(signing)
    assert get(address, cookie)[0] == 303
    assert get(address, cookie)[0] == 401, "the second time"
    address, cookie = back(signing)
    assert get(address.replace("state=", "state=x"), cookie)[0] == 401
    address, cookie = back(signing)
    assert get(address.replace("iss=", "iss=x"), cookie)[0] == 401, "of another provider"
    address, cookie = back(signing)
    assert (
        get(f"{signing.url}/api/v1/oidc/callback?error=access_denied&state={idp.seen[-1]['state']}", cookie)[0] == 401
    )


def test_a_code_that_the_provider_does_not_know_signs_nobody_in(signing: Service) -> None:
    address, cookie = back(signing)
    status, _, cookies, body = get(address.replace("code=", "code=x"), cookie)
    assert (status, cookie_of(cookies, "penstock_session")) == (401, "")
    assert SECRET.encode() not in body


def test_a_way_that_takes_too_long_ends_and_there_are_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "HOLDS", -1.0)
    found = pending.PendingSignIns()
    made = found.begin("http://x")
    assert found.end(made.state, made.browser) is None
    monkeypatch.setattr(pending, "HOLDS", 600.0)
    monkeypatch.setattr(pending, "MOST", 2)
    first, *others = [found.begin("http://x") for _ in range(3)]
    assert found.end(first.state, first.browser) is None
    assert all(found.end(each.state, each.browser) for each in others)
    assert made.verifier not in repr(made)


def test_a_provider_that_is_another_one_or_away_is_said(
    idp: TestProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = OidcSettings(idp.url, CLIENT, (RoleRule.of("*:viewer"),))
    idp.issuer = "https://evil.example"
    with pytest.raises(SetupError, match=f"calls itself {idp.url}, got 'https://evil.example'"):
        provider.Provider(settings).sign_in_url(pending.PendingSignIns().begin("http://x"))
    away = OidcSettings("http://127.0.0.1:9", CLIENT, settings.roles)
    with serving(Manager(tmp_path / "data", DRIVER), Listening(port=0, oidc=away)) as url:
        status, _, _, body = get(f"{url}/api/v1/oidc/start")
    assert (status, json.loads(body)["detail"]) == (503, "the provider 127.0.0.1 cannot be asked (URLError)")


def test_a_server_without_a_provider_offers_none(service: Service) -> None:
    assert service.json("GET", "/api/v1/oidc") == {"provider": ""}
    assert service.ask("GET", "/api/v1/oidc/start")[0] == 404
    assert service.ask("GET", "/api/v1/oidc/callback?state=x&code=y")[0] == 404


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"issuer": "http://login.example.org"}, "expected a URL with https"),
        ({"issuer": "https://user@login.example.org"}, "expected a URL with https"),
        ({"issuer": "file:///etc/passwd"}, "expected a URL with https"),
        ({"client": ""}, "needs --oidc-client"),
        ({"roles": ()}, "needs --oidc-role"),
        ({"redirect": "http://jobs.example.org/x"}, "--oidc-redirect: expected a URL"),
    ],
)
def test_settings_that_are_not_safe_are_refused(given: dict[str, Any], message: str) -> None:
    safe = {"issuer": "https://login.example.org", "client": CLIENT, "roles": (RoleRule.of("*:viewer"),)}
    assert SECRET not in repr(OidcSettings(**safe, secret=SECRET))  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=message):
        OidcSettings(**{**safe, **given})


@pytest.mark.parametrize("text", ["admin", "groups:admin", "groups=x:root", "*=x:viewer", "=x:viewer", "groups=x:"])
def test_a_rule_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match="expected CLAIM=VALUE:ROLE"):
        RoleRule.of(text)


def test_the_secret_is_read_of_a_file_or_the_environment(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of the file\n")
    assert read_secret(tmp_path / "secret", {"PENSTOCK_OIDC_SECRET": "x"}) == "of the file"
    assert read_secret(None, {"PENSTOCK_OIDC_SECRET": "x"}) == "x"
    assert read_secret(None, {}) == ""
    with pytest.raises(SetupError, match="cannot be read"):
        read_secret(tmp_path / "none", {})
