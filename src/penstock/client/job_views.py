"""What jobs are and do. Made of the server's OpenAPI by scripts/client.py (`make reference`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from penstock.client.answers import (
    Event,
    JobView,
)
from penstock.client.connection import Connection, ServerEvent


class JobViews(Connection):
    """What jobs are and do."""

    def follow_job(self, name: str, events: int = 0) -> Iterator[ServerEvent]:
        """One job, as it moves.

        Server-sent events: `job` has the job, the rates of its steps over the last seconds, and their totals.

        Args:
            name: the name of the job.
            events: end after so many events; 0 never.
        """
        return self.follow("GET", self.path_of("/live/jobs/{name}", name=name), query={"events": events})

    def follow_jobs(self, events: int = 0) -> Iterator[ServerEvent]:
        """All jobs, as they move.

        Server-sent events: `jobs` has the list, each time that it has changed.

        Args:
            events: end after so many events; 0 never.
        """
        return self.follow("GET", self.path_of("/live/jobs"), query={"events": events})

    def follow_messages(self, name: str, events: int = 0) -> Iterator[ServerEvent]:
        """A few messages with all their tuples.

        Server-sent events: `trace` has a few messages of spouts of a batch, and every tuple of theirs that a bolt has taken. For those who may change the job.

        Args:
            name: the name of the job.
            events: end after so many events; 0 never.
        """
        return self.follow("GET", self.path_of("/live/jobs/{name}/trace", name=name), query={"events": events})

    def follow_profile(self, name: str, events: int = 0) -> Iterator[ServerEvent]:
        """Where the time of a job goes.

        Server-sent events: `profile` has how often each stack was seen in the driver and in its Python workers since somebody began to look.

        Args:
            name: the name of the job.
            events: end after so many events; 0 never.
        """
        return self.follow("GET", self.path_of("/live/jobs/{name}/profile", name=name), query={"events": events})

    def follow_stream(
        self, name: str, step: str, events: int = 0, port: str = "out", where: str = ""
    ) -> Iterator[ServerEvent]:
        """A few records of a stream, as they pass.

        Server-sent events: `sample` has at most 50 records of each batch. Nothing is sampled when nobody looks; for those who may change the job.

        Args:
            name: the name of the job.
            step: the step whose output is looked at.
            events: end after so many events; 0 never.
            port: which output of the step, such as a side output.
            where: a condition, as an expression: n > 3.
        """
        return self.follow(
            "GET",
            self.path_of("/live/jobs/{name}/sample", name=name),
            query={"step": step, "events": events, "port": port, "where": where},
        )

    def list_checkpoints(self, name: str, limit: int = 50) -> dict[str, Any]:
        """The versions of a job's checkpoint.

        The newest first: when each was written, and how much state it names.

        Args:
            name: the name of the job.
            limit: how many entries the answer has at most.
        """
        found: dict[str, Any] = self.ask_json(
            "GET", self.path_of("/jobs/{name}/checkpoints", name=name), query={"limit": limit}
        )
        return found

    def list_dead_letters(self, name: str, step: str = "", after: str = "", limit: int = 100) -> dict[str, Any]:
        """The records that steps of a job have put aside.

        The newest first, with their causes and records, for those who may change the job; and how many each step has.

        Args:
            name: the name of the job.
            step: only those of this step; empty: of all.
            after: the id of the last one of the page before.
            limit: how many entries the answer has at most.
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

        Args:
            name: the name of the job.
            before: the time of the last one of the page before.
            limit: how many entries the answer has at most.
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

        Args:
            phase: only jobs in this phase; empty: in any.
            owner: only jobs of this owner; empty: of all.
            after: names later than this one, for the next page.
            limit: how many entries the answer has at most.
        """
        found: dict[str, list[JobView]] = self.ask_json(
            "GET", self.path_of("/jobs"), query={"phase": phase, "owner": owner, "after": after, "limit": limit}
        )
        return found

    def list_log_levels(self, name: str) -> dict[str, Any]:
        """How much a job logs.

        By logger, what was asked for.

        Args:
            name: the name of the job.
        """
        found: dict[str, Any] = self.ask_json("GET", self.path_of("/jobs/{name}/log-levels", name=name))
        return found

    def list_rules(self, name: str) -> dict[str, Any]:
        """The rules, patterns and standing queries of a job.

        By step: their texts and versions, whether they are enabled, who changed them last, and their runs, for those who may change the job.

        Args:
            name: the name of the job.
        """
        found: dict[str, Any] = self.ask_json("GET", self.path_of("/jobs/{name}/rules", name=name))
        return found

    def list_savepoints(self, name: str, after: str = "", limit: int = 1000) -> dict[str, list[dict[str, Any]]]:
        """The savepoints of a job.

        The oldest first.

        Args:
            name: the name of the job.
            after: the name of the last one of the page before.
            limit: how many entries the answer has at most.
        """
        found: dict[str, list[dict[str, Any]]] = self.ask_json(
            "GET", self.path_of("/jobs/{name}/savepoints", name=name), query={"after": after, "limit": limit}
        )
        return found

    def read_advice(self, name: str, rate: float | None = None, busy: float = 0.7) -> dict[str, Any]:
        """How many tasks a job needs.

        The tasks of each Python step for a rate, by how long its tasks have worked for the records of the last five minutes.

        Args:
            name: the name of the job.
            rate: records a second that it is to take.
            busy: the share of its time that a task is to be busy.
        """
        found: dict[str, Any] = self.ask_json(
            "GET", self.path_of("/jobs/{name}/advice", name=name), query={"rate": rate, "busy": busy}
        )
        return found

    def read_failure(self, name: str) -> dict[str, Any]:
        """What ended the last driver that failed.

        The error, the step, the record and the traceback; empty where none failed.

        Args:
            name: the name of the job.
        """
        found: dict[str, Any] = self.ask_json("GET", self.path_of("/jobs/{name}/failure", name=name))
        return found

    def read_history(self, name: str, span: Literal["5m", "1h", "1d", "all"] = "5m", step: str = "") -> dict[str, Any]:
        """The figures of a job over time.

        Figures by name, a value for each time. A figure that is counted, divided by `span`, is a rate.

        Args:
            name: the name of the job.
            span: how far back.
            step: the figures of one step.
        """
        found: dict[str, Any] = self.ask_json(
            "GET", self.path_of("/jobs/{name}/history", name=name), query={"span": span, "step": step}
        )
        return found

    def read_log(self, name: str, lines: int = 100, search: str = "") -> str:
        """The end of a job's log.

        The newest lines that have a text in them, as plain text.

        Args:
            name: the name of the job.
            lines: how many lines the answer has at most.
            search: only lines that have this text in them.
        """
        return self.ask_text(
            "GET", self.path_of("/jobs/{name}/log", name=name), query={"lines": lines, "search": search}
        )

    def read_plan(self, name: str) -> dict[str, Any]:
        """What a job's flow will do.

        As `penstock describe --json` says; settings of steps are for those who may change the job.

        Args:
            name: the name of the job.
        """
        found: dict[str, Any] = self.ask_json("GET", self.path_of("/jobs/{name}/plan", name=name))
        return found

    def read_source(self, name: str) -> dict[str, Any]:
        """The file that a job runs.

        Its text, for those who may change the job.

        Args:
            name: the name of the job.
        """
        found: dict[str, Any] = self.ask_json("GET", self.path_of("/jobs/{name}/source", name=name))
        return found

    def show_job(self, name: str) -> JobView:
        """Show a job.

        One job, with its ETag.

        Args:
            name: the name of the job.
        """
        found: JobView = self.ask_json("GET", self.path_of("/jobs/{name}", name=name))
        return found
