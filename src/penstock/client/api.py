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
    RecordPage,
    StoredView,
    Token,
    TopicPage,
)
from penstock.client.job_routes import JobRoutes


class Api(JobRoutes):
    """All routes of the API, a method for each."""

    def close_session(self, *, idempotency_key: str = "") -> None:
        """Sign a browser out.

        The session ends at once, on the server too.
        """
        self.ask("DELETE", self.path_of("/session"), header={"Idempotency-Key": idempotency_key})

    def list_alerts(self, after: str = "", limit: int = 1000) -> AlertPage:
        """The rules of alerts, and what fires.

        Of targets by HTTP the host alone is shown.
        """
        found: AlertPage = self.ask_json("GET", self.path_of("/alerts"), query={"after": after, "limit": limit})
        return found

    def list_audit(self, before: float | None = None, limit: int = 100) -> dict[str, list[AuditEntry]]:
        """Who changed what.

        The newest first.
        """
        found: dict[str, list[AuditEntry]] = self.ask_json(
            "GET", self.path_of("/audit"), query={"before": before, "limit": limit}
        )
        return found

    def list_logs(self, after: str = "", limit: int = 1000) -> dict[str, list[dict[str, Any]]]:
        """The logs that jobs use, with their topics and groups.

        Offsets, sizes and lag; `kind` is `log` for one of Penstock's own, `kafka` for a cluster, which is asked beside and shown as it was at the last look.
        """
        found: dict[str, list[dict[str, Any]]] = self.ask_json(
            "GET", self.path_of("/logs"), query={"after": after, "limit": limit}
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
        """
        found: dict[str, list[Pool]] = self.ask_json(
            "GET", self.path_of("/pools"), query={"after": after, "limit": limit}
        )
        return found

    def list_tokens(self, after: str = "", limit: int = 1000) -> dict[str, list[Token]]:
        """List tokens.

        Whose they are, not what they are; the newest first.
        """
        found: dict[str, list[Token]] = self.ask_json(
            "GET", self.path_of("/tokens"), query={"after": after, "limit": limit}
        )
        return found

    def list_topics(self, after: str = "", limit: int = 100) -> TopicPage:
        """The topics of the server's log.

        By name, with offsets, sizes and the groups that read them.
        """
        found: TopicPage = self.ask_json("GET", self.path_of("/topics"), query={"after": after, "limit": limit})
        return found

    def make_link(self, *, idempotency_key: str = "") -> dict[str, Any]:
        """Make a link that signs a browser in, once.

        The path of the console with a code behind the `#`, which browsers send to nobody. It signs in as who asks.
        """
        found: dict[str, Any] = self.ask_json(
            "POST", self.path_of("/sign-in-links"), header={"Idempotency-Key": idempotency_key}
        )
        return found

    def make_plan(self, file: str, text: str, *, idempotency_key: str = "") -> dict[str, Any]:
        """What a flow would do.

        Builds the flow in a process of its own, as submitting it would, and runs nothing; its bundle can then be submitted.
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
        """
        found: Pool = self.ask_json(
            "PUT",
            self.path_of("/pools/{name}", name=name),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
            body={"cores": cores, "memory": memory, "owner_cores": owner_cores, "owner_memory": owner_memory},
        )
        return found

    def put_record(
        self, log: str, topic: str, value: str, key: str | None = None, *, idempotency_key: str = ""
    ) -> dict[str, int]:
        """Put a record into a topic.

        Where it is then.
        """
        found: dict[str, int] = self.ask_json(
            "POST",
            self.path_of("/logs/{log}/topics/{topic}/records", log=log, topic=topic),
            header={"Idempotency-Key": idempotency_key},
            body={"value": value, "key": key},
        )
        return found

    def put_records(
        self,
        topic: str,
        content: bytes,
        key_field: str = "",
        key_header: str = "",
        kind: str = "application/json",
        *,
        idempotency_key: str = "",
    ) -> StoredView:
        """Put records into a topic.

        Answers when they are on disk, as `penstock bridge http` does. An Idempotency-Key is kept with the records, so it holds also after a restart.
        """
        found: StoredView = self.ask_json(
            "POST",
            self.path_of("/topics/{topic}", topic=topic),
            query={"key_field": key_field, "key_header": key_header},
            header={"Idempotency-Key": idempotency_key},
            content=content,
            kind=kind,
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

    def read_records(
        self, log: str, topic: str, partition: int | None = None, where: str = "", limit: int = 50
    ) -> dict[str, list[dict[str, Any]]]:
        """The newest records of a topic.

        The newest first. The filter is a small language over the fields of JSON; it runs no code.
        """
        found: dict[str, list[dict[str, Any]]] = self.ask_json(
            "GET",
            self.path_of("/logs/{log}/topics/{topic}/records", log=log, topic=topic),
            query={"partition": partition, "where": where, "limit": limit},
        )
        return found

    def read_topic(self, topic: str, partition: int = 0, offset: int = 0, limit: int = 100) -> RecordPage:
        """Records of a topic, from an offset on.

        In their order. Records that retention has deleted are passed over; `next` is where to go on, also when there are none yet.
        """
        found: RecordPage = self.ask_json(
            "GET",
            self.path_of("/topics/{topic}/records", topic=topic),
            query={"partition": partition, "offset": offset, "limit": limit},
        )
        return found

    def remove_alert(self, name: str, *, idempotency_key: str = "", if_match: str = "") -> None:
        """Forget an alert.

        It is told to nobody any more.
        """
        self.ask(
            "DELETE",
            self.path_of("/alerts/{name}", name=name),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
        )

    def remove_pool(self, name: str, *, idempotency_key: str = "", if_match: str = "") -> None:
        """Forget a pool.

        One that has no jobs.
        """
        self.ask(
            "DELETE",
            self.path_of("/pools/{name}", name=name),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
        )

    def revoke_token(self, id: str, *, idempotency_key: str = "") -> None:
        """Revoke a token.

        It ends at once.
        """
        self.ask("DELETE", self.path_of("/tokens/{id}", id=id), header={"Idempotency-Key": idempotency_key})

    def send_bundle(
        self, content: bytes, kind: str = "application/zip", *, idempotency_key: str = ""
    ) -> dict[str, str]:
        """Send a bundle of code.

        Keeps an archive; its name is the SHA-256 of its bytes, so sending it again changes nothing.
        """
        found: dict[str, str] = self.ask_json(
            "POST", self.path_of("/bundles"), header={"Idempotency-Key": idempotency_key}, content=content, kind=kind
        )
        return found

    def show_alert(self, name: str) -> AlertView:
        """Show an alert.

        Its rule, with its ETag.
        """
        found: AlertView = self.ask_json("GET", self.path_of("/alerts/{name}", name=name))
        return found

    def show_pool(self, name: str) -> Pool:
        """Show a pool.

        Its limits, with its ETag.
        """
        found: Pool = self.ask_json("GET", self.path_of("/pools/{name}", name=name))
        return found

    def silence_alert(self, name: str, seconds: float, *, idempotency_key: str = "", if_match: str = "") -> AlertView:
        """Tell nobody of an alert for a while.

        It is looked at and shown all the same.
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
        """
        found: AuditVerification = self.ask_json("GET", self.path_of("/audit/verification"), query={"noted": noted})
        return found

    def who_am_i(self) -> dict[str, str]:
        """Who asks.

        The owner and the role of the token.
        """
        found: dict[str, str] = self.ask_json("GET", self.path_of("/me"))
        return found
