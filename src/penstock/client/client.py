"""A client of the server of jobs, as the command line uses it: all routes of the API, and what makes them handy."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.client.answers import Event, JobView, Pool, Token
from penstock.client.api import Api
from penstock.errors import SetupError

_MOST = 1_000


@dataclass(frozen=True)
class Client(Api):
    """Speaks to one server, with one token. Every route of the API is a method; those here are made of them.

    Attributes:
        url: the address of the server, such as `http://127.0.0.1:8880`.
        token: the token to show.
        certificate: the certificate of the server, where no authority that this machine knows has signed it.
        seconds: how long to wait for an answer.
        tries: how often a request is sent that the server could not take, or whose answer was lost.

    >>> Client("http://127.0.0.1:8880", "pstk_x").url
    'http://127.0.0.1:8880'
    """

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
            SetupError: no server was started on this machine, the address is none, or there is no token for the one that is named.
        """
        if not url:
            return cls._local(root)
        if not url.startswith(("http://", "https://")):
            raise SetupError(f"expected the address of a server such as http://127.0.0.1:8880, got {url!r}")
        token = _token_in(token_file) if token_file else os.environ.get("PENSTOCK_TOKEN", "")
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
        except (ValueError, KeyError, TypeError):
            raise SetupError(f"{root / 'server.json'} is damaged; start the server again: `penstock server`") from None

    def bundle(self, archive: bytes) -> str:
        """Sends a bundle.

        Args:
            archive: its bytes.

        Returns:
            Its name, for `submit`.
        """
        return self.send_bundle(archive)["bundle"]

    def submit(
        self,
        name: str,
        bundle: str,
        target: str,
        options: Mapping[str, object] | None = None,
        key: str = "",
        needs: Mapping[str, Any] | None = None,
        packages: Mapping[str, str] | None = None,
    ) -> JobView:
        """Submits a job.

        Args:
            name: the name of the job.
            bundle: the name of its bundle.
            target: the flow in it, as `penstock run` takes it.
            options: the options of its run, by the names of `RunSpec`.
            key: an idempotency key: the same request may be sent again.
            needs: its `pool`, the `cores` and the `memory` (in MiB) that it asks for, its `priority`.
            packages: the packages that its flow imports, each with the extra of Penstock that installs it, or nothing; the server must have them.

        Returns:
            The job.
        """
        given = {"packages": dict(packages or {}), **(needs or {})}
        return self.submit_job(name, bundle, target, dict(options or {}), **given, idempotency_key=key)

    def upgrade(
        self,
        name: str,
        bundle: str,
        target: str = "",
        options: Mapping[str, object] | None = None,
        trial: float = 300.0,
        packages: Mapping[str, str] | None = None,
    ) -> JobView:
        """Has a job run another version, from a savepoint of the one that runs; if the new one does not come up, that one goes on.

        Args:
            name: the name of the job.
            bundle: the name of the new bundle.
            target: the flow in it; else as before.
            options: options of its run that change.
            trial: the seconds in which the new version must come up.
            packages: the packages that the new version imports, as for `submit`.

        Returns:
            The job; `upgrade` says how the upgrade goes.
        """
        return self.upgrade_job(name, bundle, target, dict(options or {}), trial, dict(packages or {}))

    def jobs(self) -> list[JobView]:
        """All jobs, by name.

        Returns:
            What the API shows of each.
        """
        return _all_pages(lambda after: self.list_jobs(after=after, limit=_MOST)["jobs"], lambda job: job["name"])

    def job(self, name: str) -> JobView:
        """One job.

        Args:
            name: its name.

        Returns:
            What the API shows of it.
        """
        return self.show_job(name)

    def act(self, name: str, action: str, body: Mapping[str, object] | None = None) -> Any:
        """Has something done with a job.

        Args:
            name: its name.
            action: `stop`, `kill`, `pause`, `resume`, `restart`, `rescale` or `savepoints`.
            body: what the action takes.

        Returns:
            The job, or the savepoint.
        """
        return self.ask_json("POST", self.path_of("/jobs/{name}/{action}", name=name, action=action), body=body or {})

    def remove(self, name: str) -> None:
        """Has a job forgotten that has stopped.

        Args:
            name: its name.
        """
        self.remove_job(name)

    def log(self, name: str, lines: int = 100, search: str = "") -> str:
        """The end of the log of a job.

        Args:
            name: its name.
            lines: how many lines at most.
            search: a text that they have.

        Returns:
            The lines.
        """
        return self.read_log(name, lines, search)

    def events(self, name: str) -> list[Event]:
        """What happened to a job, the newest first.

        Args:
            name: its name.

        Returns:
            The events: time, what, detail.
        """
        return self.list_events(name)["events"]

    def dead_letters(self, name: str, step: str = "", limit: int = 100) -> list[dict[str, Any]]:
        """The newest dead letters of a job, the newest first.

        Args:
            name: the job.
            step: only those of a step.
            limit: how many at most.

        Returns:
            Each with its id, step, cause, record, payload and traceback.
        """
        found: list[dict[str, Any]] = self.list_dead_letters(name, step, limit=limit)["dead_letters"]
        return found

    def sign_in_link(self) -> str:
        """Makes a link that signs a browser in to the console, once, as the owner of the token.

        Returns:
            The link.
        """
        return f"{self.url}{self.make_link()['path']}"

    def pools(self) -> list[Pool]:
        """The pools that have limits.

        Returns:
            Their names and limits.
        """
        return _all_pages(lambda after: self.list_pools(after, _MOST)["pools"], lambda pool: pool["name"])

    def set_pool(self, name: str, limits: Mapping[str, int | None]) -> Pool:
        """Sets the limits of a pool; for administrators.

        Args:
            name: its name.
            limits: `cores` and `memory` (in MiB) of all its jobs, `owner_cores` and `owner_memory` of those of one owner.

        Returns:
            The pool.
        """
        return self.put_pool(name, **dict[str, Any](limits))

    def alerts(self) -> dict[str, list[Any]]:
        """The rules of alerts, and what fires.

        Returns:
            `rules` and `firing`.
        """
        rules = _all_pages(lambda after: self.list_alerts(after, _MOST)["rules"], lambda rule: rule["name"])
        return {"rules": rules, "firing": self.list_alerts(limit=1)["firing"]}

    def set_alert(self, name: str, rule: Mapping[str, Any]) -> Any:
        """Sets an alert; for administrators.

        Args:
            name: its name.
            rule: `measure`, `above`, and where they are not the usual ones `seconds`, `jobs`, `to` and `severity`.

        Returns:
            The rule.
        """
        return self.put_alert(name, **rule)

    def tokens(self) -> list[Token]:
        """All tokens, the newest first; for administrators.

        Returns:
            Whose they are and when they end.
        """
        return _all_pages(lambda after: self.list_tokens(after, _MOST)["tokens"], lambda token: token["id"])


def _all_pages(page: Callable[[str], list[Any]], name: Callable[[Any], str]) -> list[Any]:
    """The entries of a list, page after page."""
    found: list[Any] = []
    while True:
        entries = page(name(found[-1]) if found else "")
        found += entries
        if len(entries) < _MOST:
            return found


def _token_in(file: Path) -> str:
    try:
        return file.read_text().strip()
    except (OSError, ValueError) as error:
        raise SetupError(f"the token in {file} cannot be read ({getattr(error, 'strerror', None) or error})") from None
