"""A client of the server of jobs, as the command line uses it.

client = Client.found()
client.submit("count", bundle, "count.py")
client.job("count")["phase"]
"""

from __future__ import annotations

import json
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from penstock.errors import PenstockError, SetupError

PREFIX = "/api/v1"
_SECONDS = 60.0


class ServerError(PenstockError):
    """The server refused a request; `status` is that of HTTP."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


@dataclass(frozen=True)
class Client:
    """Speaks to one server, with one token.

    Attributes:
        url: the address of the server, such as `http://127.0.0.1:8880`.
        token: the token to show.
        certificate: the certificate of the server, where no authority that this machine knows has signed it.
    """

    url: str
    token: str = field(repr=False)
    certificate: Path | None = None

    @classmethod
    def found(cls, root: Path, url: str = "", token_file: Path | None = None) -> Client:
        """The client of the server that is named, or else of the one whose jobs are under `root`.

        Args:
            root: where the manager of this machine keeps its jobs.
            url: the address of another server; `PENSTOCK_TOKEN` or `token_file` then has the token.
            token_file: a file with the token.

        Returns:
            The client; whether the server answers is seen at the first call.

        Raises:
            SetupError: no server was started on this machine, or there is no token for the one that is named.
        """
        if not url:
            return cls._local(root)
        token = token_file.read_text().strip() if token_file else os.environ.get("PENSTOCK_TOKEN", "")
        if not token:
            raise SetupError(f"a token for {url} is needed: --token-file FILE, or PENSTOCK_TOKEN in the environment")
        return cls(url.rstrip("/"), token)

    @classmethod
    def _local(cls, root: Path) -> Client:
        try:
            found = json.loads((root / "server.json").read_text())
            return cls(found["url"], (root / found["token_file"]).read_text().strip())
        except OSError:
            raise SetupError(
                f"no server of jobs has run with {root}; start one with `penstock server`, or name one with --server URL"
            ) from None

    def bundle(self, archive: bytes) -> str:
        """Sends a bundle.

        Args:
            archive: its bytes.

        Returns:
            Its name, for `submit`.
        """
        return str(self._call("POST", "/bundles", archive, {"Content-Type": "application/zip"})["bundle"])

    def submit(
        self, name: str, bundle: str, target: str, options: Mapping[str, object] | None = None, key: str = ""
    ) -> dict[str, Any]:
        """Submits a job.

        Args:
            name: the name of the job.
            bundle: the name of its bundle.
            target: the flow in it, as `penstock run` takes it.
            options: the options of its run, by the names of `RunSpec`.
            key: an idempotency key: the same request may be sent again.

        Returns:
            The job.
        """
        body = {"name": name, "bundle": bundle, "target": target, "options": dict(options or {})}
        return self._send("/jobs", body, {"Idempotency-Key": key} if key else {})

    def jobs(self) -> list[dict[str, Any]]:
        """All jobs, by name.

        Returns:
            What the API shows of each.
        """
        found: list[dict[str, Any]] = []
        while True:
            after = found[-1]["name"] if found else ""
            page = self._call("GET", f"/jobs?{urlencode({'limit': 1000, 'after': after})}")["jobs"]
            found += page
            if len(page) < 1000:
                return found

    def job(self, name: str) -> dict[str, Any]:
        """One job.

        Args:
            name: its name.

        Returns:
            What the API shows of it.
        """
        return self._call("GET", f"/jobs/{quote(name, safe='')}")

    def act(self, name: str, action: str, body: Mapping[str, object] | None = None) -> dict[str, Any]:
        """Has something done with a job.

        Args:
            name: its name.
            action: `stop`, `kill`, `pause`, `resume`, `restart`, `rescale` or `savepoints`.
            body: what the action takes.

        Returns:
            The job, or the savepoint.
        """
        return self._send(f"/jobs/{quote(name, safe='')}/{action}", body or {})

    def remove(self, name: str) -> None:
        """Has a job forgotten that has stopped.

        Args:
            name: its name.
        """
        self._call("DELETE", f"/jobs/{quote(name, safe='')}")

    def log(self, name: str, lines: int = 100, search: str = "") -> str:
        """The end of the log of a job.

        Args:
            name: its name.
            lines: how many lines at most.
            search: a text that they have.

        Returns:
            The lines.
        """
        query = urlencode({"lines": lines, "search": search})
        return self._read("GET", f"/jobs/{quote(name, safe='')}/log?{query}").decode(errors="replace")

    def events(self, name: str) -> list[dict[str, Any]]:
        """What happened to a job, the newest first.

        Args:
            name: its name.

        Returns:
            The events: time, what, detail.
        """
        found: list[dict[str, Any]] = self._call("GET", f"/jobs/{quote(name, safe='')}/events")["events"]
        return found

    def make_token(self, owner: str, role: str, seconds: float | None = None) -> dict[str, Any]:
        """Makes a token; for administrators.

        Args:
            owner: whose it is.
            role: `viewer`, `operator`, `developer` or `admin`.
            seconds: after which time it ends; None is never.

        Returns:
            The token (`token`), which is shown here and nowhere else, with its id, owner, role and end.
        """
        return self._send("/tokens", {"owner": owner, "role": role, "seconds": seconds})

    def tokens(self) -> list[dict[str, Any]]:
        """All tokens, the newest first; for administrators.

        Returns:
            Whose they are and when they end.
        """
        found: list[dict[str, Any]] = self._call("GET", "/tokens")["tokens"]
        return found

    def revoke_token(self, id: str) -> None:
        """Ends a token at once; for administrators.

        Args:
            id: its id.
        """
        self._call("DELETE", f"/tokens/{quote(id, safe='')}")

    def _send(self, path: str, body: Mapping[str, object], headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        return self._call(
            "POST", path, json.dumps(body).encode(), {"Content-Type": "application/json", **(headers or {})}
        )

    def _call(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._read(method, path, body, headers) or b"{}")
        return found

    def _read(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        request = urllib.request.Request(
            self.url + PREFIX + path, body, {"Authorization": f"Bearer {self.token}", **(headers or {})}, method=method
        )
        try:
            with _opener(self.certificate).open(request, timeout=_SECONDS) as answer:
                content: bytes = answer.read()
                return content
        except urllib.error.HTTPError as error:
            raise ServerError(error.code, _detail(error)) from None
        except (urllib.error.URLError, OSError) as error:
            reason = getattr(error, "reason", error)
            raise SetupError(
                f"the server of jobs at {self.url} does not answer ({reason}); start it with `penstock server`"
            ) from None


def _opener(certificate: Path | None) -> urllib.request.OpenerDirector:
    """No proxies, no redirects: a token goes to the server that was named."""
    context = ssl.create_default_context(cafile=str(certificate) if certificate else None)
    made = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(context=context),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        made.add_handler(handler)
    return made


def _detail(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read())["detail"])
    except (ValueError, KeyError, TypeError):
        return f"the server answered {error.code}"
