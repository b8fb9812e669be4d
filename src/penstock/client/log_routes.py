"""The routes of logs and their topics. Made of the server's OpenAPI by scripts/client.py (`make reference`)."""

from __future__ import annotations

from typing import Any

from penstock.client.answers import (
    RecordPage,
    StoredView,
    TopicPage,
)
from penstock.client.job_routes import JobRoutes


class LogRoutes(JobRoutes):
    """The routes of logs and their topics."""

    def list_logs(self, after: str = "", limit: int = 1000) -> dict[str, list[dict[str, Any]]]:
        """The logs that jobs use, with their topics and groups.

        Offsets, sizes and lag; `kind` is `log` for one of Penstock's own, `kafka` for a cluster, which is asked beside and shown as it was at the last look.

        Args:
            after: the name of the last one of the page before.
            limit: how many entries the answer has at most.
        """
        found: dict[str, list[dict[str, Any]]] = self.ask_json(
            "GET", self.path_of("/logs"), query={"after": after, "limit": limit}
        )
        return found

    def list_topics(self, after: str = "", limit: int = 100) -> TopicPage:
        """The topics of the server's log.

        By name, with offsets, sizes and the groups that read them.

        Args:
            after: names later than this one, for the next page.
            limit: how many entries the answer has at most.
        """
        found: TopicPage = self.ask_json("GET", self.path_of("/topics"), query={"after": after, "limit": limit})
        return found

    def put_record(
        self, log: str, topic: str, value: str, key: str | None = None, *, idempotency_key: str = ""
    ) -> dict[str, int]:
        """Put a record into a topic.

        Where it is then.

        Args:
            log: the id of the log or cluster, as the list of logs has it.
            topic: the name of the topic.
            value: its value.
            key: its key; null: none.
            idempotency_key: the same when a request is sent again: it is then answered as before.
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

        Args:
            topic: the name of the topic.
            content: a record, an array of records, or a record in each line.
            key_field: the field of the JSON that is the key: user.id.
            key_header: the header that is the key.
            kind: its media type: application/json, application/x-ndjson, application/octet-stream.
            idempotency_key: the same when a request is sent again: it is then answered as before.
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

    def read_records(
        self, log: str, topic: str, partition: int | None = None, where: str = "", limit: int = 50
    ) -> dict[str, list[dict[str, Any]]]:
        """The newest records of a topic.

        The newest first. The filter is a small language over the fields of JSON; it runs no code.

        Args:
            log: the id of the log or cluster, as the list of logs has it.
            topic: the name of the topic.
            partition: only records of this partition; none: of all.
            where: a filter: total > 100 and kind = 'order'.
            limit: how many entries the answer has at most.
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

        Args:
            topic: the name of the topic.
            partition: the partition to read.
            offset: `next` of the page before.
            limit: how many entries the answer has at most.
        """
        found: RecordPage = self.ask_json(
            "GET",
            self.path_of("/topics/{topic}/records", topic=topic),
            query={"partition": partition, "offset": offset, "limit": limit},
        )
        return found
