"""What the server answers. Made of the server's OpenAPI by scripts/client.py (`make reference`)."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class AlertPage(TypedDict):
    """Rules by name, and what fires."""

    rules: list[AlertView]
    firing: list[NoticeView]


class AlertView(TypedDict):
    """A rule as it is shown: of targets by HTTP the host alone."""

    name: str
    measure: Literal["lag", "failures", "silence", "late", "dead", "disk"]
    above: float
    seconds: float
    jobs: str
    to: list[str]
    severity: Literal["info", "warning", "critical"]
    silent_until: NotRequired[float]


class AuditEntry(TypedDict):
    """A change that somebody made."""

    time: float
    actor: str
    action: str
    object: str
    detail: NotRequired[str]


class AuditVerification(TypedDict):
    """Whether the audit is what was written."""

    is_whole: bool
    entries: int
    cut: int
    head: str
    faults: list[str]


class Event(TypedDict):
    """Something that happened to a job."""

    time: float
    what: str
    detail: NotRequired[str]


class JobView(TypedDict):
    """A job: what is wanted, where it is, and how far."""

    name: str
    owner: str
    phase: str
    wish: str
    target: str
    bundle: str
    generation: int
    restarts: int
    failures: int
    reason: str
    pool: str
    cores: int
    memory: int
    priority: int
    upgrade: NotRequired[str]
    since: float
    created: float
    flow: NotRequired[str]
    batches: NotRequired[int]
    rows: NotRequired[int]
    rate: NotRequired[float | None]
    batch_seconds: NotRequired[float | None]
    lag: NotRequired[dict[str, dict[str, int]]]
    lags: NotRequired[list[list[str | float]]]
    behind: NotRequired[dict[str, dict[str, int]]]
    under_way: NotRequired[str]
    health: NotRequired[str]
    health_reason: NotRequired[str]
    throughput: NotRequired[float | None]
    error: NotRequired[str]
    has_failed: NotRequired[bool]
    options: NotRequired[dict[str, Any] | None]
    etag: str


class NoticeView(TypedDict):
    """What fires."""

    rule: str
    job: str
    since: float
    text: str


class Pool(TypedDict):
    """The limits of a pool and of each owner in it; None is no limit."""

    name: NotRequired[str]
    cores: NotRequired[int | None]
    memory: NotRequired[int | None]
    owner_cores: NotRequired[int | None]
    owner_memory: NotRequired[int | None]


class Position(TypedDict):
    """Where records of a request are: so many from an offset on."""

    partition: int
    offset: int
    records: int


class RecordPage(TypedDict):
    """Records of a partition, and the offset to go on from."""

    records: list[RecordView]
    next: int


class RecordView(TypedDict):
    """A record of a topic."""

    partition: int
    offset: int
    timestamp: int
    key: str | None
    value: str | None
    headers: list[list[Any]]


class StoredView(TypedDict):
    """What was stored, and where."""

    records: int
    positions: list[Position]


class Token(TypedDict):
    """A token as it is listed; what it is itself nobody knows but who got it."""

    id: str
    owner: str
    role: Literal["viewer", "operator", "developer", "admin"]
    created: float
    expires: NotRequired[float | None]
    revoked: NotRequired[float | None]
    used: NotRequired[float | None]


class TopicPage(TypedDict):
    """Topics by name."""

    topics: list[TopicView]


class TopicView(TypedDict):
    """A topic."""

    topic: str
    cleanup: str
    retention_ms: int | None
    retention_bytes: int | None
    records: int
    bytes: int
    damage: int
    partitions: list[dict[str, Any]]
    groups: list[dict[str, Any]]
