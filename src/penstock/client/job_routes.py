"""The routes that change jobs. Made of the server's OpenAPI by scripts/client.py (`make reference`)."""

# ruff: noqa: PLR0913 - as many arguments as a route has

from __future__ import annotations

from typing import Any, Literal

from penstock.client.answers import (
    JobView,
)
from penstock.client.job_views import JobViews


class JobRoutes(JobViews):
    """The routes that change jobs."""

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

        Args:
            name: the name of the job.
            step: the step that has the rule, pattern or query.
            op: what is done with it.
            rule: the name of the rule, pattern or query.
            text: its new text, where it is added or changed.
            runs: drop, keep or drain the runs of a pattern.
            idempotency_key: the same when a request is sent again: it is then answered as before.
            if_match: the ETag of what is changed; 412 when it has changed since.
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

        Args:
            name: the name of the job.
            ids: their ids, as the list has them.
            idempotency_key: the same when a request is sent again: it is then answered as before.
            if_match: the ETag of what is changed; 412 when it has changed since.
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

        Args:
            name: the name of the job.
            id: the id of the dead letter, as the list has it.
            payload: what is sent to the step in place of the payload before.
            idempotency_key: the same when a request is sent again: it is then answered as before.
            if_match: the ETag of what is changed; 412 when it has changed since.
        """
        found: dict[str, str] = self.ask_json(
            "PUT",
            self.path_of("/jobs/{name}/dead-letters/{id}", name=name, id=id),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
            body={"payload": payload},
        )
        return found

    def kill_job(self, name: str, *, idempotency_key: str = "", if_match: str = "") -> JobView:
        """Stop a job at once.

        Args:
            name: the name of the job.
            idempotency_key: the same when a request is sent again: it is then answered as before.
            if_match: the ETag of what is changed; 412 when it has changed since.
        """
        found: JobView = self.ask_json(
            "POST",
            self.path_of("/jobs/{name}/kill", name=name),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
        )
        return found

    def make_version_plan(
        self, name: str, text: str, *, idempotency_key: str = "", if_match: str = ""
    ) -> dict[str, Any]:
        """What another version of a job would do.

        Builds the job's flow with another text of its file, the other files of its bundle beside it; the bundle that is made can then be the upgrade.

        Args:
            name: the name of the job.
            text: the text of the file.
            idempotency_key: the same when a request is sent again: it is then answered as before.
            if_match: the ETag of what is changed; 412 when it has changed since.
        """
        found: dict[str, Any] = self.ask_json(
            "POST",
            self.path_of("/jobs/{name}/plans", name=name),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
            body={"text": text},
        )
        return found

    def pause_job(self, name: str, *, idempotency_key: str = "", if_match: str = "") -> JobView:
        """Have a job read nothing and keep its state.

        Args:
            name: the name of the job.
            idempotency_key: the same when a request is sent again: it is then answered as before.
            if_match: the ETag of what is changed; 412 when it has changed since.
        """
        found: JobView = self.ask_json(
            "POST",
            self.path_of("/jobs/{name}/pause", name=name),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
        )
        return found

    def read_stacks(self, name: str, *, idempotency_key: str = "", if_match: str = "") -> dict[str, str]:
        """Where the driver of a job is at this moment.

        The Python stacks of all its threads, and of its workers where they are on the same machine; the job runs on.

        Args:
            name: the name of the job.
            idempotency_key: the same when a request is sent again: it is then answered as before.
            if_match: the ETag of what is changed; 412 when it has changed since.
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

        Args:
            name: the name of the job.
            idempotency_key: the same when a request is sent again: it is then answered as before.
            if_match: the ETag of what is changed; 412 when it has changed since.
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

        Args:
            name: the name of the job.
            ids: their ids, as the list has them.
            idempotency_key: the same when a request is sent again: it is then answered as before.
            if_match: the ETag of what is changed; 412 when it has changed since.
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

        Args:
            name: the name of the job.
            tasks: tasks of each keyed step.
            idempotency_key: the same when a request is sent again: it is then answered as before.
            if_match: the ETag of what is changed; 412 when it has changed since.
        """
        found: JobView = self.ask_json(
            "POST",
            self.path_of("/jobs/{name}/rescale", name=name),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
            body={"tasks": tasks},
        )
        return found

    def restart_job(self, name: str, *, idempotency_key: str = "", if_match: str = "") -> JobView:
        """Start another driver.

        Args:
            name: the name of the job.
            idempotency_key: the same when a request is sent again: it is then answered as before.
            if_match: the ETag of what is changed; 412 when it has changed since.
        """
        found: JobView = self.ask_json(
            "POST",
            self.path_of("/jobs/{name}/restart", name=name),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
        )
        return found

    def resume_job(self, name: str, *, idempotency_key: str = "", if_match: str = "") -> JobView:
        """Have a job run.

        Args:
            name: the name of the job.
            idempotency_key: the same when a request is sent again: it is then answered as before.
            if_match: the ETag of what is changed; 412 when it has changed since.
        """
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

        Args:
            name: the name of the job.
            level: the least that is logged; default: as usual.
            logger: penstock, spark, root or the name of a logger.
            idempotency_key: the same when a request is sent again: it is then answered as before.
            if_match: the ETag of what is changed; 412 when it has changed since.
        """
        found: dict[str, Any] = self.ask_json(
            "PUT",
            self.path_of("/jobs/{name}/log-levels", name=name),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
            body={"level": level, "logger": logger},
        )
        return found

    def stop_job(self, name: str, *, idempotency_key: str = "", if_match: str = "") -> JobView:
        """Stop a job after its batch.

        Args:
            name: the name of the job.
            idempotency_key: the same when a request is sent again: it is then answered as before.
            if_match: the ETag of what is changed; 412 when it has changed since.
        """
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

        Args:
            name: the name of the job.
            bundle: the name of the bundle, as sending it has returned it.
            target: the flow in the bundle: count.py, count.py:flow.
            options: options of the run, as `penstock run` has them: interval, master.
            pool: the pool that it runs in.
            cores: what it asks for; 0 is what Spark takes by itself.
            memory: in MiB; 0 is what Spark takes by itself.
            priority: jobs with a higher one start first.
            packages: packages that the flow imports, each with the extra of Penstock that installs it, or nothing.
            idempotency_key: the same when a request is sent again: it is then answered as before.
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

        Args:
            name: the name of the job.
            new_name: its name.
            idempotency_key: the same when a request is sent again: it is then answered as before.
            if_match: the ETag of what is changed; 412 when it has changed since.
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

        Args:
            name: the name of the job.
            bundle: the name of the bundle, as sending it has returned it.
            target: the flow in the bundle; empty: as before.
            options: options of the run that change.
            trial: seconds that it has to come up.
            packages: packages that the flow imports, each with the extra of Penstock that installs it, or nothing.
            idempotency_key: the same when a request is sent again: it is then answered as before.
            if_match: the ETag of what is changed; 412 when it has changed since.
        """
        found: JobView = self.ask_json(
            "POST",
            self.path_of("/jobs/{name}/upgrade", name=name),
            header={"Idempotency-Key": idempotency_key, "If-Match": if_match},
            body={"bundle": bundle, "target": target, "options": options, "trial": trial, "packages": packages},
        )
        return found
