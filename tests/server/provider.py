"""An OpenID Connect provider on loopback, with keys of its own: it signs everybody in, and checks clients as a real one does."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT, SECRET = "penstock", "canary-client-secret"
Claims = dict[str, Any]


def new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass
class TestProvider:
    """What it knows, and what it does with a token before it sends it."""

    __test__ = False
    url: str = ""
    keys: dict[str, rsa.RSAPrivateKey] = field(default_factory=lambda: {"one": new_key()})
    claims: Claims = field(default_factory=dict)
    sign: Callable[[Claims], str] | None = None
    issuer: str = ""
    fetched: int = 0
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    seen: list[dict[str, str]] = field(default_factory=list)

    def signed(self, claims: Claims, kid: str = "", **header: Any) -> str:
        name = kid or next(reversed(self.keys))
        return jwt.encode(claims, self.keys.get(name) or new_key(), "RS256", {"kid": name, **header})

    def public_pem(self, kid: str = "one") -> bytes:
        public = self.keys[kid].public_key()
        return public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)

    def jwks(self) -> dict[str, Any]:
        self.fetched += 1
        made = [json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(k.public_key())) for k in self.keys.values()]
        return {"keys": [{**key, "kid": kid, "use": "sig", "alg": "RS256"} for kid, key in zip(self.keys, made)]}

    def description(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer or self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/jwks",
            "code_challenge_methods_supported": ["S256"],
        }

    def authorize(self, asked: dict[str, str]) -> str:
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        self.seen.append(asked)
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state'], 'iss': self.url})}"

    def token(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        asked = self.codes.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        expected = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if (
            asked is None
            or authorization != f"Basic {expected}"
            or base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != asked["code_challenge"]
            or form["redirect_uri"] != asked["redirect_uri"]
        ):
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "sub": "u1", "iat": now, "exp": now + 300, "nonce": asked["nonce"]}
        person = {"email": "ada@example.org", "email_verified": True, "groups": ["streams"]}
        made = {**claims, **person, **self.claims}
        made = {name: value for name, value in made.items() if value is not None}
        return 200, {"token_type": "Bearer", "access_token": "x", "id_token": (self.sign or self.signed)(made)}


@contextmanager
def provider() -> Iterator[TestProvider]:
    """A provider that answers."""
    found = TestProvider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, asked = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)
            if path == "/authorize":
                self.send_response(302)
                self.send_header("Location", found.authorize({k: v[0] for k, v in asked.items()}))
                self.end_headers()
            elif path == "/jwks":
                self.answer(200, found.jwks())
            else:
                self.answer(200, found.description())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {k: v[0] for k, v in parse_qs(body).items()}
            self.answer(*found.token(form, self.headers.get("Authorization", "")))

        def answer(self, status: int, made: dict[str, Any]) -> None:
            content = json.dumps(made).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()
