"""A schema registry: schemas by id, and ids of schemas, over its REST interface. What was asked once is kept."""

from __future__ import annotations

import base64
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from penstock.connectors.kafka.settings import looked_up
from penstock.errors import RunError

NOT_FOUND = 404
TYPE = "application/vnd.schemaregistry.v1+json"


class RegistryDown(RunError):
    """The registry does not answer as it should, which is no fault of the record at hand."""


@dataclass(frozen=True)
class RegisteredSchema:
    """A schema as the registry has it, with those it refers to, by name."""

    kind: str
    text: str
    references: tuple[tuple[str, RegisteredSchema], ...] = ()


@dataclass
class Registry:
    """A client. `options` may have user and password, token, and ca (a file with the certificate of the authority)."""

    url: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    patience: float = 10.0
    _by_id: dict[tuple[int, str], RegisteredSchema] = field(default_factory=dict, repr=False)
    _ids: dict[tuple[str, str], int] = field(default_factory=dict, repr=False)

    def schema(self, number: int, form: str = "") -> RegisteredSchema:
        """The schema of an id; `form` asks for another form of it, such as `serialized`."""
        if (number, form) not in self._by_id:
            found = self._ask(f"/schemas/ids/{number}{_query(form)}")
            if found is None:
                raise RunError(
                    f"the schema registry at {self.url} knows no schema with the id {number}. Is it the registry that the producer writes "
                    f"with, and was the schema not deleted?"
                )
            self._by_id[number, form] = self._registered(found, form)
        return self._by_id[number, form]

    def _registered(self, found: dict[str, Any], form: str) -> RegisteredSchema:
        others = tuple(
            (r["name"], self._version(r["subject"], r["version"], form)) for r in found.get("references", ())
        )
        return RegisteredSchema(found.get("schemaType", "AVRO"), found["schema"], others)

    def _version(self, subject: str, version: int, form: str) -> RegisteredSchema:
        found = self._ask(f"/subjects/{quote(subject, safe='')}/versions/{version}{_query(form)}")
        if found is None:
            raise RunError(
                f"the schema registry at {self.url} has no version {version} of {subject!r}, which a schema refers to"
            )
        return self._registered(found, form)

    def register(self, subject: str, kind: str, text: str) -> int:
        """The id of a schema under a subject; it is added if it is not there."""
        if (subject, text) not in self._ids:
            found = self._ask(f"/subjects/{quote(subject, safe='')}/versions", {"schemaType": kind, "schema": text})
            if found is None:
                raise RunError(f"the schema registry at {self.url} does not take schemas for {subject!r}")
            self._ids[subject, text] = int(found["id"])
        return self._ids[subject, text]

    def _ask(self, path: str, body: object = None) -> dict[str, Any] | None:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url.rstrip('/')}{path}", data, self._headers())
        try:
            with urllib.request.urlopen(request, timeout=self.patience, context=self._tls()) as answer:
                return dict(json.load(answer))
        except urllib.error.HTTPError as error:
            if error.code == NOT_FOUND:
                return None
            raise RegistryDown(f"the schema registry at {self.url} answers {error.code}: {_reason(error)}") from None
        except (OSError, ValueError) as error:
            raise RegistryDown(f"the schema registry at {self.url} does not answer: {error}") from None

    def _headers(self) -> dict[str, str]:
        made = {"Content-Type": TYPE, "Accept": TYPE}
        given = {k: looked_up(v) for k, v in self.options.items()}
        if "user" in given:
            pair = f"{given['user']}:{given.get('password', '')}".encode()
            made["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        if "token" in given:
            made["Authorization"] = f"Bearer {given['token']}"
        return made

    def _tls(self) -> ssl.SSLContext | None:
        return ssl.create_default_context(cafile=self.options.get("ca")) if self.url.startswith("https") else None


def _query(form: str) -> str:
    return f"?format={form}" if form else ""


def _reason(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read())["message"])
    except (OSError, ValueError, KeyError, TypeError):
        return str(error.reason)


_REGISTRIES: dict[tuple[str, tuple[tuple[str, str], ...]], Registry] = {}


def registry_at(url: str, options: Mapping[str, str] | None) -> Registry:
    """The one client of this process for a registry: what one batch has asked for, the next need not."""
    name = (url, tuple(sorted((options or {}).items())))
    if name not in _REGISTRIES:
        _REGISTRIES[name] = Registry(url, dict(options or {}))
    return _REGISTRIES[name]
