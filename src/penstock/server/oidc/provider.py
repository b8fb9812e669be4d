"""An OpenID Connect provider: its description, its keys, and the tokens that it signs."""

from __future__ import annotations

import base64
import hmac
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

import jwt

from penstock.errors import OptionError, SetupError
from penstock.jobs.manager.alerts.outside import opener
from penstock.server.oidc.pending import SignIn, SignInRefused
from penstock.server.oidc.settings import OidcSettings, check_url

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures by a key of which only the provider has the secret half; never `none`, and never one that the public half could make."""
LEEWAY = 60.0
"""How many seconds the clocks of provider and server may differ."""
FRESH, PAUSE = 3_600.0, 10.0
"""After so many seconds keys are fetched again; and for a key that is not known at most this often."""
TIMEOUT, LARGEST = 10.0, 1 << 20
SCOPES = "openid profile email"
_NEEDED = ("authorization_endpoint", "token_endpoint", "jwks_uri")


@dataclass
class Provider:
    """The provider of a server. It is asked when somebody signs in first, so a server starts without it."""

    settings: OidcSettings
    _described: Mapping[str, Any] = field(default_factory=dict)
    _keys: Mapping[str, jwt.PyJWK] = field(default_factory=dict)
    _fetched: float = -FRESH
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def sign_in_url(self, sign_in: SignIn) -> str:
        """Where a browser is sent."""
        asked = {
            "response_type": "code",
            "client_id": self.settings.client,
            "redirect_uri": sign_in.redirect,
            "scope": SCOPES,
            "state": sign_in.state,
            "nonce": sign_in.nonce,
            "code_challenge": sign_in.challenge,
            "code_challenge_method": "S256",
        }
        where = self._description()["authorization_endpoint"]
        return f"{where}{'&' if '?' in where else '?'}{urlencode(asked)}"

    def claims(self, code: str, sign_in: SignIn) -> dict[str, Any]:
        """What the provider says of who came back with a code, once it has been checked; raises SignInRefused."""
        answer = self._exchange(code, sign_in)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise SignInRefused("the provider sent no id_token")
        return self.checked(token, sign_in.nonce)

    def checked(self, token: str, nonce: str) -> dict[str, Any]:
        """The claims of an id_token that the provider made for this server and this sign-in; raises SignInRefused for all others."""
        settings = self.settings
        try:
            found: dict[str, Any] = jwt.decode(
                token,
                self._key(token),
                algorithms=list(ALGORITHMS),
                audience=settings.client,
                issuer=settings.issuer,
                leeway=LEEWAY,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise SignInRefused(f"the id_token does not hold: {error}") from None
        if not hmac.compare_digest(str(found.get("nonce", "")).encode(), nonce.encode()):
            raise SignInRefused("the id_token is of another sign-in: its nonce is not the one that was sent")
        if isinstance(found["aud"], list) and len(found["aud"]) > 1 and found.get("azp") != settings.client:
            raise SignInRefused("the id_token was made for another client: its azp is not this one")
        return found

    def _key(self, token: str) -> jwt.PyJWK:
        """The key that a token names. One that is not known may be new: the keys are fetched again, now and then."""
        header = jwt.get_unverified_header(token)
        name = str(header.get("kid", ""))
        with self._lock:
            age = time.monotonic() - self._fetched
            if age > FRESH or (name not in self._keys and age > PAUSE):
                self._keys, self._fetched = self._fetch_keys(), time.monotonic()
            found = self._keys.get(name)
        if found is None:
            raise SignInRefused("the id_token is signed by a key that the provider does not have")
        return found

    def _fetch_keys(self) -> dict[str, jwt.PyJWK]:
        made = jwt.PyJWKSet.from_dict(self._get(self._description()["jwks_uri"]))
        keys = [key for key in made.keys if key.key_type in ("RSA", "EC", "OKP")]
        return {str(key.key_id or ""): key for key in keys if key.public_key_use in (None, "sig")}

    def _description(self) -> Mapping[str, Any]:
        if not self._described:
            found = self._get(f"{self.settings.issuer.rstrip('/')}/.well-known/openid-configuration")
            self._described = _checked_description(found, self.settings.issuer)
        return self._described

    def _exchange(self, code: str, sign_in: SignIn) -> dict[str, Any]:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": sign_in.redirect,
            "client_id": self.settings.client,
            "code_verifier": sign_in.verifier,
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        if self.settings.secret:
            known = self._description().get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
            if "client_secret_basic" in known:
                headers["Authorization"] = f"Basic {self._basic()}"
            else:
                form["client_secret"] = self.settings.secret
        where = self._description()["token_endpoint"]
        try:
            return _read(urllib.request.Request(where, urlencode(form).encode(), headers, method="POST"))
        except urllib.error.HTTPError as error:
            with error:
                raise SignInRefused(f"the provider did not take the code (HTTP {error.code})") from None
        except (OSError, ValueError) as error:
            raise self._away(error) from None

    def _basic(self) -> str:
        pair = f"{quote(self.settings.client, safe='')}:{quote(self.settings.secret, safe='')}"
        return base64.b64encode(pair.encode()).decode()

    def _get(self, url: str) -> dict[str, Any]:
        try:
            return _read(urllib.request.Request(url, headers={"Accept": "application/json"}))
        except urllib.error.HTTPError as error:
            with error:
                raise SetupError(f"the provider {self.settings.provider} answers HTTP {error.code}") from None
        except (OSError, ValueError) as error:
            raise self._away(error) from None

    def _away(self, error: Exception) -> SetupError:
        return SetupError(f"the provider {self.settings.provider} cannot be asked ({type(error).__name__})")


def _read(request: urllib.request.Request) -> dict[str, Any]:
    """A JSON object; no proxies, no redirects, and no more than a megabyte."""
    with opener(lambda host: True).open(request, timeout=TIMEOUT) as answer:
        found = json.loads(answer.read(LARGEST))
    if not isinstance(found, dict):
        raise ValueError("expected a JSON object")
    return found


def _checked_description(found: Mapping[str, Any], issuer: str) -> Mapping[str, Any]:
    """Refuses the description of another provider, and one whose addresses are not safe."""
    if found.get("issuer") != issuer:
        raise SetupError(
            f"--oidc: expected a provider that calls itself {issuer}, got {str(found.get('issuer'))[:200]!r}"
        )
    try:
        for name in _NEEDED:
            check_url(name, str(found.get(name)))
    except OptionError as error:
        raise SetupError(f"the description of the provider: {error}") from None
    if "S256" not in found.get("code_challenge_methods_supported", ["S256"]):
        raise SetupError("--oidc: expected a provider with PKCE (S256), got one without")
    return found
