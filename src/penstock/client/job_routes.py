"""The routes of jobs. Made of the server's OpenAPI by scripts/client.py (`make reference`)."""

# ruff: noqa: PLR0913 - as many arguments as a route has

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from penstock.client.answers import (
    Event,
    JobView,
)
from penstock.client.connection import Connection, ServerEvent


class JobRoutes(Connection):
    """The routes of jobs."""

    def change_rule(
        self,
        name: str,
        step: str,
        op: Literal["add", "change", "remove", "enable", "disable"],
        rule: str = "",
        text: str = "",
        runs: str = "",
        *,
        idempotency_key: str = "",
        if_match: str = "",
    ) -> dict[str, Any]:
        """Change a rule, a pattern or a standing query.

        By the topic from which the job takes changes; it takes effect with one of the next batches.
        """
        found: dict[str, Any] = self.ask_json(
            "POST",
            self.path_of("/jobs/{name}/rules/{step}", name=name, step=step),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
            body={"op": op, "rule": rule, "text": text, "runs": runs},
        )
        return found

    def drop_dead_letters(
        self, name: str, ids: list[str], *, idempotency_key: str = "", if_match: str = ""
    ) -> dict[str, int]:
        """Remove dead letters for good.

        There is no way back.
        """
        found: dict[str, int] = self.ask_json(
            "POST",
            self.path_of("/jobs/{name}/dead-letters/drop", name=name),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
            body={"ids": ids},
        )
        return found

    def edit_dead_letter(
        self, name: str, id: str, payload: dict[str, Any], *, idempotency_key: str = "", if_match: str = ""
    ) -> dict[str, str]:
        """Change the record of a dead letter.

        Before it is sent back; a request to send it back that still waits is taken back.
        """
        found: dict[str, str] = self.ask_json(
            "PUT",
            self.path_of("/jobs/{name}/dead-letters/{id}", name=name, id=id),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
            body={"payload": payload},
        )
        return found

    def follow_job(self, name: str, events: int = 0) -> Iterator[ServerEvent]:
        """One job, as it moves.

        Server-sent events: `job` has the job, the rates of its steps over the last seconds, and their totals.
        """
        return self.follow("GET", self.path_of("/live/jobs/{name}", name=name), query={"events": events})

    def follow_jobs(self, events: int = 0) -> Iterator[ServerEvent]:
        """All jobs, as they move.

        Server-sent events: `jobs` has the list, each time that it has changed.
        """
        return self.follow("GET", self.path_of("/live/jobs"), query={"events": events})

    def follow_messages(self, name: str, events: int = 0) -> Iterator[ServerEvent]:
        """A few messages with all their tuples.

        Server-sent events: `trace` has a few messages of spouts of a batch, and every tuple of theirs that a bolt has taken. For those who may change the job.
        """
        return self.follow("GET", self.path_of("/live/jobs/{name}/trace", name=name), query={"events": events})

    def follow_profile(self, name: str, events: int = 0) -> Iterator[ServerEvent]:
        """Where the time of a job goes.

        Server-sent events: `profile` has how often each stack was seen in the driver and in its Python workers since somebody began to look.
        """
        return self.follow("GET", self.path_of("/live/jobs/{name}/profile", name=name), query={"events": events})

    def follow_stream(
        self, name: str, step: str, events: int = 0, port: str = "out", where: str = ""
    ) -> Iterator[ServerEvent]:
        """A few records of a stream, as they pass.

        Server-sent events: `sample` has at most 50 records of each batch. Nothing is sampled when nobody looks; for those who may change the job.
        """
        return self.follow(
            "GET",
            self.path_of("/live/jobs/{name}/sample", name=name),
            query={"step": step, "events": events, "port": port, "where": where},
        )

    def kill_job(self, name: str, *, idempotency_key: str = "", if_match: str = "") -> JobView:
        """Stop a job at once."""
        found: JobView = self.ask_json(
            "POST",
            self.path_of("/jobs/{name}/kill", name=name),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
        )
        return found

    def list_checkpoints(self, name: str, limit: int = 50) -> dict[str, Any]:
        """The versions of a job's checkpoint.

        The newest first: when each was written, and how much state it names.
        """
        found: dict[str, Any] = self.ask_json(
            "GET", self.path_of("/jobs/{name}/checkpoints", name=name), query={"limit": limit}
        )
        return found

    def list_dead_letters(self, name: str, step: str = "", after: str = "", limit: int = 100) -> dict[str, Any]:
        """The records that steps of a job have put aside.

        The newest first, with their causes and records, for those who may change the job; and how many each step has.
        """
        found: dict[str, Any] = self.ask_json(
            "GET",
            self.path_of("/jobs/{name}/dead-letters", name=name),
            query={"step": step, "after": after, "limit": limit},
        )
        return found

    def list_events(self, name: str, before: float | None = None, limit: int = 100) -> dict[str, list[Event]]:
        """What happened to a job.

        The newest first, of the newest thousand.
        """
        found: dict[str, list[Event]] = self.ask_json(
            "GET", self.path_of("/jobs/{name}/events", name=name), query={"before": before, "limit": limit}
        )
        return found

    def list_jobs(
        self,
        phase: Literal["queued", "starting", "running", "stopping", "waiting", "held", "finished", "paused", "stopped"]
        | Literal[""] = "",
        owner: str = "",
        after: str = "",
        limit: int = 100,
    ) -> dict[str, list[JobView]]:
        """List jobs.

        Jobs by name, without their options.
        """
        found: dict[str, list[JobView]] = self.ask_json(
            "GET", self.path_of("/jobs"), query={"phase": phase, "owner": owner, "after": after, "limit": limit}
        )
        return found

    def list_log_levels(self, name: str) -> dict[str, Any]:
        """How much a job logs.

        By logger, what was asked for.
        """
        found: dict[str, Any] = self.ask_json("GET", self.path_of("/jobs/{name}/log-levels", name=name))
        return found

    def list_rules(self, name: str) -> dict[str, Any]:
        """The rules, patterns and standing queries of a job.

        By step: their texts and versions, whether they are enabled, who changed them last, and their runs, for those who may change the job.
        """
        found: dict[str, Any] = self.ask_json("GET", self.path_of("/jobs/{name}/rules", name=name))
        return found

    def list_savepoints(self, name: str, after: str = "", limit: int = 1000) -> dict[str, list[dict[str, Any]]]:
        """The savepoints of a job.

        The oldest first.
        """
        found: dict[str, list[dict[str, Any]]] = self.ask_json(
            "GET", self.path_of("/jobs/{name}/savepoints", name=name), query={"after": after, "limit": limit}
        )
        return found

    def make_version_plan(
        self, name: str, text: str, *, idempotency_key: str = "", if_match: str = ""
    ) -> dict[str, Any]:
        """What another version of a job would do.

        Builds the job's flow with another text of its file, the other files of its bundle beside it; the bundle that is made can then be the upgrade.
        """
        found: dict[str, Any] = self.ask_json(
            "POST",
            self.path_of("/jobs/{name}/plans", name=name),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
            body={"text": text},
        )
        return found

    def pause_job(self, name: str, *, idempotency_key: str = "", if_match: str = "") -> JobView:
        """Have a job read nothing and keep its state."""
        found: JobView = self.ask_json(
            "POST",
            self.path_of("/jobs/{name}/pause", name=name),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
        )
        return found

    def read_advice(self, name: str, rate: float | None = None, busy: float = 0.7) -> dict[str, Any]:
        """How many tasks a job needs.

        The tasks of each Python step for a rate, by how long its tasks have worked for the records of the last five minutes.
        """
        found: dict[str, Any] = self.ask_json(
            "GET", self.path_of("/jobs/{name}/advice", name=name), query={"rate": rate, "busy": busy}
        )
        return found

    def read_failure(self, name: str) -> dict[str, Any]:
        """What ended the last driver that failed.

        The error, the step, the record and the traceback; empty where none failed.
        """
        found: dict[str, Any] = self.ask_json("GET", self.path_of("/jobs/{name}/failure", name=name))
        return found

    def read_history(self, name: str, span: Literal["5m", "1h", "1d", "all"] = "5m", step: str = "") -> dict[str, Any]:
        """The figures of a job over time.

        Figures by name, a value for each time. A figure that is counted, divided by `span`, is a rate.
        """
        found: dict[str, Any] = self.ask_json(
            "GET", self.path_of("/jobs/{name}/history", name=name), query={"span": span, "step": step}
        )
        return found

    def read_log(self, name: str, lines: int = 100, search: str = "") -> str:
        """The end of a job's log.

        The newest lines that have a text in them, as plain text.
        """
        return self.ask_text(
            "GET", self.path_of("/jobs/{name}/log", name=name), query={"lines": lines, "search": search}
        )

    def read_plan(self, name: str) -> dict[str, Any]:
        """What a job's flow will do.

        As `penstock describe --json` says; settings of steps are for those who may change the job.
        """
        found: dict[str, Any] = self.ask_json("GET", self.path_of("/jobs/{name}/plan", name=name))
        return found

    def read_source(self, name: str) -> dict[str, Any]:
        """The file that a job runs.

        Its text, for those who may change the job.
        """
        found: dict[str, Any] = self.ask_json("GET", self.path_of("/jobs/{name}/source", name=name))
        return found

    def read_stacks(self, name: str, *, idempotency_key: str = "", if_match: str = "") -> dict[str, str]:
        """Where the driver of a job is at this moment.

        The Python stacks of all its threads, and of its workers where they are on the same machine; the job runs on.
        """
        found: dict[str, str] = self.ask_json(
            "POST",
            self.path_of("/jobs/{name}/stacks", name=name),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
        )
        return found

    def remove_job(self, name: str, *, idempotency_key: str = "", if_match: str = "") -> None:
        """Forget a job that has stopped.

        Deletes what it kept, its checkpoint included.
        """
        self.ask(
            "DELETE",
            self.path_of("/jobs/{name}", name=name),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
        )

    def replay_dead_letters(
        self, name: str, ids: list[str], *, idempotency_key: str = "", if_match: str = ""
    ) -> dict[str, int]:
        """Send dead letters back.

        They go to the step that failed on them, with the next batch.
        """
        found: dict[str, int] = self.ask_json(
            "POST",
            self.path_of("/jobs/{name}/dead-letters/replay", name=name),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
            body={"ids": ids},
        )
        return found

    def rescale_job(self, name: str, tasks: int, *, idempotency_key: str = "", if_match: str = "") -> JobView:
        """Change the number of tasks.

        Starts another driver, whose keyed steps have so many tasks; state moves along.
        """
        found: JobView = self.ask_json(
            "POST",
            self.path_of("/jobs/{name}/rescale", name=name),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
            body={"tasks": tasks},
        )
        return found

    def restart_job(self, name: str, *, idempotency_key: str = "", if_match: str = "") -> JobView:
        """Start another driver."""
        found: JobView = self.ask_json(
            "POST",
            self.path_of("/jobs/{name}/restart", name=name),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
        )
        return found

    def resume_job(self, name: str, *, idempotency_key: str = "", if_match: str = "") -> JobView:
        """Have a job run."""
        found: JobView = self.ask_json(
            "POST",
            self.path_of("/jobs/{name}/resume", name=name),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
        )
        return found

    def set_log_level(
        self,
        name: str,
        level: Literal["debug", "info", "warning", "error"] | Literal["default"],
        logger: str = "penstock",
        *,
        idempotency_key: str = "",
        if_match: str = "",
    ) -> dict[str, Any]:
        """Change how much a job logs.

        Takes effect within a second in the driver, and with the next batch in its Python workers, without a restart; drivers that start later follow it too.
        """
        found: dict[str, Any] = self.ask_json(
            "PUT",
            self.path_of("/jobs/{name}/log-levels", name=name),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
            body={"level": level, "logger": logger},
        )
        return found

    def show_job(self, name: str) -> JobView:
        """Show a job.

        One job, with its ETag.
        """
        found: JobView = self.ask_json("GET", self.path_of("/jobs/{name}", name=name))
        return found

    def stop_job(self, name: str, *, idempotency_key: str = "", if_match: str = "") -> JobView:
        """Stop a job after its batch."""
        found: JobView = self.ask_json(
            "POST",
            self.path_of("/jobs/{name}/stop", name=name),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
        )
        return found

    def submit_job(
        self,
        name: str,
        bundle: str,
        target: str,
        options: dict[str, Any] | None = None,
        pool: str = "default",
        cores: int = 0,
        memory: int = 0,
        priority: int = 0,
        packages: dict[str, str] | None = None,
        *,
        idempotency_key: str = "",
    ) -> JobView:
        """Submit a job.

        Takes a job in and starts it. The same request with the same Idempotency-Key is answered with the job that it made.
        """
        found: JobView = self.ask_json(
            "POST",
            self.path_of("/jobs"),
            header={"Idempotency-Key": idempotency_key},
            body={
                "name": name,
                "bundle": bundle,
                "target": target,
                "options": options,
                "pool": pool,
                "cores": cores,
                "memory": memory,
                "priority": priority,
                "packages": packages,
            },
        )
        return found

    def take_savepoint(
        self, name: str, new_name: str = "", *, idempotency_key: str = "", if_match: str = ""
    ) -> dict[str, Any]:
        """Take a savepoint.

        Copies the state and the offsets of a job, while it runs or after.
        """
        found: dict[str, Any] = self.ask_json(
            "POST",
            self.path_of("/jobs/{name}/savepoints", name=name),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
            body={"name": new_name},
        )
        return found

    def upgrade_job(
        self,
        name: str,
        bundle: str,
        target: str = "",
        options: dict[str, Any] | None = None,
        trial: float = 300.0,
        packages: dict[str, str] | None = None,
        *,
        idempotency_key: str = "",
        if_match: str = "",
    ) -> JobView:
        """Run another version.

        Starts the new version from a savepoint of the one that runs, which goes on if the new one does not come up within `trial` seconds.
        """
        found: JobView = self.ask_json(
            "POST",
            self.path_of("/jobs/{name}/upgrade", name=name),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
            body={"bundle": bundle, "target": target, "options": options, "trial": trial, "packages": packages},
        )
        return found
