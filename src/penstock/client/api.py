"""All routes of the API, a method for each. Made of the server's OpenAPI by scripts/client.py (`make reference`)."""

# ruff: noqa: PLR0913 - as many arguments as a route has

from __future__ import annotations

from typing import Any, Literal

from penstock.client.answers import (
    AlertPage,
    AlertView,
    AuditEntry,
    AuditVerification,
    Pool,
    Token,
)
from penstock.client.log_routes import LogRoutes


class Api(LogRoutes):
    """All routes of the API, a method for each."""

    def close_session(self, *, idempotency_key: str = "") -> None:
        """Sign a browser out.

        The session ends at once, on the server too.

        Args:
            idempotency_key: the same when a request is sent again: it is then answered as before.
        """
        self.ask("DELETE", self.path_of("/session"), header={"Idempotency-Key": idempotency_key})

    def list_alerts(self, after: str = "", limit: int = 1000) -> AlertPage:
        """The rules of alerts, and what fires.

        Of targets by HTTP the host alone is shown.

        Args:
            after: the name of the last one of the page before.
            limit: how many entries the answer has at most.
        """
        found: AlertPage = self.ask_json("GET", self.path_of("/alerts"), query={"after": after, "limit": limit})
        return found

    def list_audit(self, before: float | None = None, limit: int = 100) -> dict[str, list[AuditEntry]]:
        """Who changed what.

        The newest first.

        Args:
            before: the time of the last one of the page before.
            limit: how many entries the answer has at most.
        """
        found: dict[str, list[AuditEntry]] = self.ask_json(
            "GET", self.path_of("/audit"), query={"before": before, "limit": limit}
        )
        return found

    def list_pool_uses(self) -> dict[str, Any]:
        """How full pools are, and who waits.

        The limits of each pool, what its jobs take, by owner, and which jobs wait for what; `default` is always among them.
        """
        found: dict[str, Any] = self.ask_json("GET", self.path_of("/pool-uses"))
        return found

    def list_pools(self, after: str = "", limit: int = 1000) -> dict[str, list[Pool]]:
        """List pools.

        The limits of each, by name; `default` is listed when it has any.

        Args:
            after: the name of the last one of the page before.
            limit: how many entries the answer has at most.
        """
        found: dict[str, list[Pool]] = self.ask_json(
            "GET", self.path_of("/pools"), query={"after": after, "limit": limit}
        )
        return found

    def list_tokens(self, after: str = "", limit: int = 1000) -> dict[str, list[Token]]:
        """List tokens.

        Whose they are, not what they are; the newest first.

        Args:
            after: the name of the last one of the page before.
            limit: how many entries the answer has at most.
        """
        found: dict[str, list[Token]] = self.ask_json(
            "GET", self.path_of("/tokens"), query={"after": after, "limit": limit}
        )
        return found

    def make_link(self, *, idempotency_key: str = "") -> dict[str, Any]:
        """Make a link that signs a browser in, once.

        The path of the console with a code behind the `#`, which browsers send to nobody. It signs in as who asks.

        Args:
            idempotency_key: the same when a request is sent again: it is then answered as before.
        """
        found: dict[str, Any] = self.ask_json(
            "POST", self.path_of("/sign-in-links"), header={"Idempotency-Key": idempotency_key}
        )
        return found

    def make_plan(self, file: str, text: str, *, idempotency_key: str = "") -> dict[str, Any]:
        """What a flow would do.

        Builds the flow in a process of its own, as submitting it would, and runs nothing; its bundle can then be submitted.

        Args:
            file: its name, such as count.sql.
            text: the text of the file.
            idempotency_key: the same when a request is sent again: it is then answered as before.
        """
        found: dict[str, Any] = self.ask_json(
            "POST",
            self.path_of("/plans"),
            header={"Idempotency-Key": idempotency_key},
            body={"file": file, "text": text},
        )
        return found

    def make_token(
        self,
        owner: str,
        role: Literal["viewer", "operator", "developer", "admin"],
        seconds: float | None = None,
        *,
        idempotency_key: str = "",
    ) -> dict[str, Any]:
        """Make a token.

        The token is in this answer and nowhere else.

        Args:
            owner: whose it is.
            role: what its owner may do.
            seconds: how long it holds; null: for good.
            idempotency_key: the same when a request is sent again: it is then answered as before.
        """
        found: dict[str, Any] = self.ask_json(
            "POST",
            self.path_of("/tokens"),
            header={"Idempotency-Key": idempotency_key},
            body={"owner": owner, "role": role, "seconds": seconds},
        )
        return found

    def offered(self) -> dict[str, str]:
        """Whether an OpenID Connect provider signs browsers in.

        The host of the provider; empty where there is none. Needs no token.
        """
        found: dict[str, str] = self.ask_json("GET", self.path_of("/oidc"))
        return found

    def open_session(self, code: str = "", token: str = "") -> None:
        """Sign a browser in.

        Needs no token: the code of a link, or a token, is in the body. The session is in a cookie that scripts cannot read.

        Args:
            code: the code of a link, which works once.
            token: a token, in place of a code.
        """
        self.ask("POST", self.path_of("/session"), body={"code": code, "token": token})

    def put_alert(
        self,
        name: str,
        measure: Literal["lag", "failures", "silence", "late", "dead", "disk"],
        above: float,
        seconds: float = 0.0,
        jobs: str = "*",
        to: list[str] | None = None,
        severity: Literal["info", "warning", "critical"] = "warning",
        *,
        idempotency_key: str = "",
        if_match: str = "",
    ) -> AlertView:
        """Set an alert.

        In place of one of the same name.

        Args:
            name: the name of the alert.
            measure: what is measured.
            above: it fires when the measure is above this.
            seconds: and has been for so long.
            jobs: a pattern of the names of jobs; *: all.
            to: who gets a notice: log, a URL, or mailto: and an address.
            severity: how grave it is.
            idempotency_key: the same when a request is sent again: it is then answered as before.
            if_match: the ETag of what is changed; 412 when it has changed since.
        """
        found: AlertView = self.ask_json(
            "PUT",
            self.path_of("/alerts/{name}", name=name),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
            body={"measure": measure, "above": above, "seconds": seconds, "jobs": jobs, "to": to, "severity": severity},
        )
        return found

    def put_pool(
        self,
        name: str,
        cores: int | None = None,
        memory: int | None = None,
        owner_cores: int | None = None,
        owner_memory: int | None = None,
        *,
        idempotency_key: str = "",
        if_match: str = "",
    ) -> Pool:
        """Set the limits of a pool.

        Jobs that run go on, also where they are more than the new limits allow.

        Args:
            name: the name of the pool.
            cores: of all its jobs together.
            memory: of all its jobs together, in MiB.
            owner_cores: of the jobs of one owner.
            owner_memory: of the jobs of one owner, in MiB.
            idempotency_key: the same when a request is sent again: it is then answered as before.
            if_match: the ETag of what is changed; 412 when it has changed since.
        """
        found: Pool = self.ask_json(
            "PUT",
            self.path_of("/pools/{name}", name=name),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
            body={"cores": cores, "memory": memory, "owner_cores": owner_cores, "owner_memory": owner_memory},
        )
        return found

    def read_health(self) -> dict[str, str]:
        """Whether the server answers.

        Needs no token. Of two managers of one database the one that leads sees to the jobs, and both answer everything.
        """
        found: dict[str, str] = self.ask_json("GET", self.path_of("/health"))
        return found

    def read_metrics(self) -> str:
        """Metrics of the jobs and of the server, for Prometheus.

        In the text format of Prometheus.
        """
        return self.ask_text("GET", self.path_of("/metrics"))

    def remove_alert(self, name: str, *, idempotency_key: str = "", if_match: str = "") -> None:
        """Forget an alert.

        It is told to nobody any more.

        Args:
            name: the name of the alert.
            idempotency_key: the same when a request is sent again: it is then answered as before.
            if_match: the ETag of what is changed; 412 when it has changed since.
        """
        self.ask(
            "DELETE",
            self.path_of("/alerts/{name}", name=name),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
        )

    def remove_pool(self, name: str, *, idempotency_key: str = "", if_match: str = "") -> None:
        """Forget a pool.

        One that has no jobs.

        Args:
            name: the name of the pool.
            idempotency_key: the same when a request is sent again: it is then answered as before.
            if_match: the ETag of what is changed; 412 when it has changed since.
        """
        self.ask(
            "DELETE",
            self.path_of("/pools/{name}", name=name),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
        )

    def revoke_token(self, id: str, *, idempotency_key: str = "") -> None:
        """Revoke a token.

        It ends at once.

        Args:
            id: the id of the token, as the list of tokens has it.
            idempotency_key: the same when a request is sent again: it is then answered as before.
        """
        self.ask("DELETE", self.path_of("/tokens/{id}", id=id), header={"Idempotency-Key": idempotency_key})

    def send_bundle(
        self, content: bytes, kind: str = "application/zip", *, idempotency_key: str = ""
    ) -> dict[str, str]:
        """Send a bundle of code.

        Keeps an archive; its name is the SHA-256 of its bytes, so sending it again changes nothing.

        Args:
            content: the body of the request.
            kind: its media type: application/zip.
            idempotency_key: the same when a request is sent again: it is then answered as before.
        """
        found: dict[str, str] = self.ask_json(
            "POST", self.path_of("/bundles"), header={"Idempotency-Key": idempotency_key}, content=content, kind=kind
        )
        return found

    def show_alert(self, name: str) -> AlertView:
        """Show an alert.

        Its rule, with its ETag.

        Args:
            name: the name of the alert.
        """
        found: AlertView = self.ask_json("GET", self.path_of("/alerts/{name}", name=name))
        return found

    def show_pool(self, name: str) -> Pool:
        """Show a pool.

        Its limits, with its ETag.

        Args:
            name: the name of the pool.
        """
        found: Pool = self.ask_json("GET", self.path_of("/pools/{name}", name=name))
        return found

    def silence_alert(self, name: str, seconds: float, *, idempotency_key: str = "", if_match: str = "") -> AlertView:
        """Tell nobody of an alert for a while.

        It is looked at and shown all the same.

        Args:
            name: the name of the alert.
            seconds: how long, from now on; 0 ends the silence.
            idempotency_key: the same when a request is sent again: it is then answered as before.
            if_match: the ETag of what is changed; 412 when it has changed since.
        """
        found: AlertView = self.ask_json(
            "POST",
            self.path_of("/alerts/{name}/silence", name=name),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
            body={"seconds": seconds},
        )
        return found

    def verify_audit(self, noted: str = "") -> AuditVerification:
        """Whether the audit is what was written.

        Looks at every entry: one that was edited, dropped or moved does not fit those beside it.

        Args:
            noted: a head that an earlier look returned, kept elsewhere.
        """
        found: AuditVerification = self.ask_json("GET", self.path_of("/audit/verification"), query={"noted": noted})
        return found

    def who_am_i(self) -> dict[str, str]:
        """Who asks.

        The owner and the role of the token.
        """
        found: dict[str, str] = self.ask_json("GET", self.path_of("/me"))
        return found
