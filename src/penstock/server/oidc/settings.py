"""What a server is told of its OpenID Connect provider, and which of its users get which role."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args
from urllib.parse import urlsplit

from penstock.bridge.guard import loopback
from penstock.errors import OptionError, SetupError
from penstock.jobs.manager.access.tokens import OWNER, Identity, Role
from penstock.jobs.manager.processes.environment import SIGN_IN_SECRET

_ALL = "*"


@dataclass(frozen=True)
class RoleRule:
    """Who has a value in a claim gets a role; the claim `*` is for everybody whom the provider signs in."""

    claim: str
    value: str
    role: Role

    @classmethod
    def of(cls, text: str) -> RoleRule:
        """A rule as it is written.

        >>> RoleRule.of("groups=streams:developer").role, RoleRule.of("*:viewer").claim
        ('developer', '*')
        """
        who, _, role = text.rpartition(":")
        claim, _, value = who.partition("=")
        roles: tuple[Role, ...] = get_args(Role)
        if role not in roles or not claim or (claim == _ALL) != (not value):
            raise OptionError(
                f"--oidc-role: expected CLAIM=VALUE:ROLE or *:ROLE, with {', '.join(roles)}, got {text!r}"
            )
        return cls(claim, value, role)

    def fits(self, claims: Mapping[str, object]) -> bool:
        """Whether somebody with these claims gets the role: the claim is the value, or is a list that has it.

        >>> RoleRule.of("groups=streams:viewer").fits({"groups": ["streams"]})
        True
        """
        found = claims.get(self.claim)
        return self.claim == _ALL or found == self.value or (isinstance(found, list) and self.value in found)


@dataclass(frozen=True)
class OidcSettings:
    """The provider, the client that this server is there, and what the claims of its users mean.

    Attributes:
        issuer: the URL of the provider, as its tokens name it.
        client: the id of this server there.
        roles: who gets which role; the first rule that fits counts, and who fits none is refused.
        owner: the claim that names the user; `email` must have been verified by the provider.
        redirect: where the provider sends browsers back to; by itself, the host that they asked for.
        secret: that of the client, if it has one.
    """

    issuer: str
    client: str
    roles: tuple[RoleRule, ...]
    owner: str = "email"
    redirect: str = ""
    secret: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        check_url("--oidc", self.issuer)
        if not self.client:
            raise OptionError("--oidc needs --oidc-client ID, the id that the provider has for this server")
        if not self.roles:
            raise OptionError("--oidc needs --oidc-role CLAIM=VALUE:ROLE: nobody has a role by being known there")
        if self.redirect:
            check_url("--oidc-redirect", self.redirect)

    @property
    def provider(self) -> str:
        """The host of the provider, as people know it."""
        return urlsplit(self.issuer).hostname or ""

    def identity(self, claims: Mapping[str, object]) -> Identity | None:
        """Who somebody with these claims is here; None where no rule gives a role, or the claim that names users names none."""
        owner = claims.get(self.owner)
        role = next((rule.role for rule in self.roles if rule.fits(claims)), None)
        if self.owner == "email" and claims.get("email_verified") is not True:
            return None
        if role is None or not isinstance(owner, str) or not OWNER.fullmatch(owner):
            return None
        return Identity(owner, role)


def read_secret(file: Path | None, environment: Mapping[str, str]) -> str:
    """The secret of the client: of a file, else of the environment; empty for a client without one."""
    if file is None:
        return environment.get(SIGN_IN_SECRET, "")
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise SetupError(f"--oidc-secret-file: {file} cannot be read ({error})") from None


def role_rules(texts: Iterable[str]) -> tuple[RoleRule, ...]:
    """The rules of a command line, in their order."""
    return tuple(RoleRule.of(text) for text in texts)


def check_url(option: str, url: str) -> str:
    """Refuses a URL that is not https, unless it is of this machine: codes and keys would travel in the clear."""
    try:
        found = urlsplit(url)
        is_safe = found.scheme == "https" or (found.scheme == "http" and loopback(found.hostname or ""))
        is_url = bool(found.hostname) and (found.port or 1) > 0 and not found.fragment and found.username is None
    except ValueError:
        is_safe = is_url = False
    if not (is_safe and is_url) or any(c.isspace() or ord(c) < 32 for c in url):
        raise OptionError(f"{option}: expected a URL with https://, got {url[:200]!r}")
    return url
