"""The history of jobs: figures by the second of the last minutes in memory, and ever coarser ones of the last hours, days and months in a database.

Points are what happened in a stretch of time. Counted figures are added up when points are put together; of what was measured (`lag:`, `skew:`) the
largest stays. A manager that is killed loses ten seconds. Of each point the figures of the whole job stand beside those of its steps, so that who asks for the job reads little.
"""

from __future__ import annotations

import json
import threading
import zlib
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import groupby

from penstock.errors import OptionError
from penstock.jobs.manager.store.database import Connection, Database
from penstock.live.totals import Figures

OF_STEPS = ("skew:", "tasks:", "kept:", "bytes:", "timers:")
"""How the names of figures begin that are measured of each step, every ten seconds."""
MEASURED = ("lag:", "behind:", "skew", "tasks", "kept", "bytes", "timers", "cores")
"""How the names of figures begin that are measured, not counted."""
FINE, MOST_FINE = 1.0, 330
"""Points of the last minutes: so many seconds each, so many of them."""
LEVELS = ((10.0, 4_200.0), (150.0, 93_600.0), (3_600.0, 7_776_000.0))
"""The points in the database: so many seconds each, kept for so many seconds."""
SPANS = {"5m": 300.0, "1h": 3_600.0, "1d": 86_400.0, "all": LEVELS[-1][1]}
MOST_POINTS = 600
"""An answer has no more points than this."""
MOST_FIGURES = 5_000
"""How many figures of a job are kept; a flow with more steps than that is cut."""
SPAN = "span"
"""The figure that says how many seconds a point stands for; what happened, by it, is a rate."""
SETTLING = 30.0
MOST_NAMES = 8
"""How many lists of names are kept for the recent points of a job."""
_WHOLE = ("rows", "batches", "seconds", "native", "cores", SPAN)
_SCHEMA = "create table if not exists figures (job text, level integer, time real, whole text, steps blob, primary key (job, level, time)) without rowid"


@dataclass(frozen=True)
class Point:
    """What happened in a stretch of time that began at `time`."""

    time: float
    figures: Figures


def together(points: Iterable[Point], time: float) -> Point:
    """Points put together.

    >>> together([Point(0, {"rows": 3, "lag:records:a": 9}), Point(1, {"rows": 4, "lag:records:a": 2})], 0).figures
    {'rows': 7.0, 'lag:records:a': 9}
    """
    made: Figures = {}
    for point in points:
        for name, value in point.figures.items():
            before = made.get(name, 0.0)
            made[name] = max(before, value) if name.startswith(MEASURED) else before + value
    return Point(time, made)


def of_job(figures: Figures) -> Figures:
    """The figures of a whole job; those that steps count are added up, and so is what they keep. The skew is that of the step that has most.

    >>> of_job({"rows": 5, "in:a": 5, "dead:a": 1, "dead:b": 2, "phase:plan": 0.1, "skew:a": 1.5, "bytes:a": 10})
    {'rows': 5, 'dead': 3.0, 'phase:plan': 0.1, 'skew': 1.5, 'bytes': 10.0}
    """
    made: Figures = {}
    for name, value in figures.items():
        kind, colon, _ = name.partition(":")
        if name in _WHOLE or kind in ("phase", "lag", "behind"):
            made[name] = value
        elif kind == "skew":
            made[kind] = max(made.get(kind, 0.0), value)
        elif colon and kind not in ("in", "out", "tasks"):
            made[kind] = made.get(kind, 0.0) + value
    return made


def of_step(figures: Figures, step: str) -> Figures:
    """The figures of one step.

    >>> of_step({"span": 1, "in:a": 5, "in:b": 2, "lag:records:a": 4}, "a")
    {'span': 1, 'in': 5, 'lag:records': 4}
    """
    ending = f":{step}"
    made = {name.removesuffix(ending): value for name, value in figures.items() if name.endswith(ending)}
    return {SPAN: figures.get(SPAN, 0.0), **made}


@dataclass
class RecentPoints:
    """The points of the last minutes of one job; the names of figures are kept once for all points that have the same."""

    kept: deque[tuple[float, tuple[str, ...], array[float]]] = field(default_factory=lambda: deque(maxlen=MOST_FINE))
    known: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)

    def add(self, point: Point) -> None:
        """Takes in a point; the oldest goes."""
        names = tuple(point.figures)
        if names not in self.known and len(self.known) >= MOST_NAMES:
            self.known.clear()
        names = self.known.setdefault(names, names)
        self.kept.append((point.time, names, array("d", point.figures.values())))

    def since(self, time: float) -> list[Point]:
        """The points from a moment on."""
        return [Point(at, dict(zip(names, values))) for at, names, values in list(self.kept) if at >= time]

    def of_step(self, time: float, step: str) -> list[Point]:
        """The points from a moment on, with the figures of one step."""
        picked: dict[int, list[tuple[int, str]]] = {}
        made = []
        for at, names, values in list(self.kept):
            if at >= time:
                if id(names) not in picked:
                    picked[id(names)] = _picked(names, step)
                made.append(Point(at, {name: values[i] for i, name in picked[id(names)]}))
        return made


def _picked(names: tuple[str, ...], step: str) -> list[tuple[int, str]]:
    """Where the figures of a step stand, and how they are called without it."""
    found = of_step({name: float(i) for i, name in enumerate(names)} | {SPAN: float(names.index(SPAN))}, step)
    return [(int(i), name) for name, i in found.items()]


@dataclass
class JobHistory:
    """One job as the manager follows it: its last totals, the recent points, and those that are not in the database yet."""

    run: object = None
    totals: Figures = field(default_factory=dict)
    recent: RecentPoints = field(default_factory=RecentPoints)
    waiting: list[Point] = field(default_factory=list)
    whole: RecentPoints = field(default_factory=RecentPoints)
    """The recent points without their steps."""
    last: float = 0.0
    written: float = 0.0


@dataclass
class History:
    """The history of all jobs of a manager."""

    database: Database
    jobs: dict[str, JobHistory] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def make(self) -> None:
        """Makes the table, if it is not there."""
        with self.database.writes() as found:
            found.execute("drop table if exists points")  # of an older layout, without the figures of the whole job
            found.execute(_SCHEMA)

    def observe(self, job: str, progress: Mapping[str, object], now: float) -> Point | None:
        """Takes in what a driver says of itself; the point that follows, if it says more than at the last look."""
        with self._lock:
            found = self.jobs.setdefault(job, JobHistory())
        totals, time = figures_of(progress), float(str(progress.get("time", 0.0)))
        run = (progress.get("pid"), progress.get("generation"))
        if not totals or (run == found.run and time <= found.last):
            return None
        is_new, before = found.run is None, found.totals if run == found.run else {}
        began = found.last if run == found.run else float(str(progress.get("began", time)))
        if time // LEVELS[0][0] == found.last // LEVELS[0][0]:
            totals = {name: value for name, value in totals.items() if not name.startswith(OF_STEPS)}
        found.run, found.last = run, time
        found.totals = {name: value for name, value in totals.items() if not name.startswith(MEASURED)}
        if is_new and began < now - SETTLING:  # it ran before this manager looked: what it did is not of this moment
            return None
        point = Point(time, {SPAN: max(time - began, 0.001), **_grown(totals, before)})
        with self._lock:
            found.recent.add(point)
            found.whole.add(Point(time, of_job(point.figures)))
            found.waiting.append(point)
        return point

    def recent(self, job: str, seconds: float, now: float) -> Point | None:
        """The last seconds of a job as one point; None where nothing is known of them."""
        found = self.jobs.get(job)
        points = found.recent.since(now - seconds) if found else []
        return together(points, points[0].time) if points else None

    def summary(self, job: str, seconds: float, now: float) -> Point | None:
        """The last seconds of a whole job, without its steps, as one point; lists of many jobs ask for this."""
        found = self.jobs.get(job)
        points = found.whole.since(now - seconds) if found else []
        return together(points, points[0].time) if points else None

    def flush(self, now: float, epoch: int | None = None) -> None:
        """Writes what waits, of each job every ten seconds, not of all at once, and lets go of what is too old. Nothing is forced to disk: it is history."""
        for job, points in self._due(now).items():
            with self._changes(epoch) as found:
                _write(found, job, 0, buckets(points, LEVELS[0][0]))
                _roll(found, job, now)

    def skip(self) -> None:
        """Leaves what waits to the manager that leads."""
        self._due()

    def _due(self, now: float | None = None) -> dict[str, list[Point]]:
        """What waits of the jobs whose turn it is now, or of all."""
        with self._lock:
            waiting = {name: found for name, found in self.jobs.items() if found.waiting}
            due = {name: found.waiting for name, found in waiting.items() if now is None or _is_due(name, found, now)}
            for name in due:
                self.jobs[name].waiting, self.jobs[name].written = [], now or 0.0
        return due

    def forget(self, job: str, epoch: int | None = None) -> None:
        """Forgets a job."""
        with self._lock:
            self.jobs.pop(job, None)
        with self._changes(epoch) as found:
            found.execute("delete from figures where job = ?", (job,))

    def points(self, job: str, span: str, now: float, step: str = "") -> tuple[float, list[Point]]:
        """The points of a job, or of one of its steps, over a span, oldest first, and how many seconds each stands for."""
        if span not in SPANS:
            raise OptionError(f"expected a span, {', '.join(SPANS)}, got {span!r}")
        since, found = now - SPANS[span], self.jobs.get(job)
        if span == "5m":
            recent = _recent(found, since, step) if found else []
            older = self._stored(job, 0, since, step, found)
            return (10.0, list(buckets([*older, *recent], 10.0))) if older else (FINE, recent)
        level = {"1h": 0, "1d": 1, "all": 2}[span]
        stored = self._stored(job, level, since, step)
        for finer in range(level - 1, -1, -1):  # what is too new for its level yet
            stored += self._stored(job, finer, stored[-1].time + LEVELS[finer + 1][0] if stored else since, step)
        width = LEVELS[level][0]
        if span == "all" and stored:
            width = _fitting(now - stored[0].time)
        waiting = [Point(p.time, _chosen(p.figures, step)) for p in (list(found.waiting) if found else [])]
        return width, list(buckets([*stored, *waiting], width))

    def _stored(
        self, job: str, level: int, since: float, step: str = "", found: JobHistory | None = None
    ) -> list[Point]:
        width = LEVELS[0][0]  # the stretch in which the recent points begin is theirs
        until = found.recent.kept[0][0] // width * width if found and found.recent.kept else float("inf")
        with self.database.reads() as opened:
            rows = opened.execute(
                f"select time, {'steps' if step else 'whole'} from figures where job = ? and level = ? and time >= ? and time < ? order by time",  # noqa: S608 - one of two columns
                (job, level, since, until),
            ).fetchall()
        return [Point(at, of_step(_unpacked(kept), step) if step else json.loads(kept)) for at, kept in rows]

    def _changes(self, epoch: int | None) -> AbstractContextManager[Connection]:
        """A file of its own belongs to one manager; in a database that managers share only the one that leads writes."""
        return self.database.changes(epoch) if self.database.is_shared else self.database.writes()

    def close(self) -> None:
        """Closes the database."""
        self.database.close()


def figures_of(progress: Mapping[str, object]) -> Figures:
    """The figures in what a driver says: its totals, how much sources have waiting, how far event time is behind."""
    totals = progress.get("totals")
    if not isinstance(totals, Mapping):
        return {}
    reported = {**totals["figures"], **(totals.get("measured") or {})}
    made: Figures = {str(k): float(v) for k, v in list(reported.items())[:MOST_FIGURES]}
    for source, unit, value in progress.get("lags") or ():  # type: ignore[attr-defined]  # a list of three
        made[f"lag:{unit}:{source}"] = float(value)
    at = float(str(progress.get("time", 0.0)))
    return made | {f"behind:{step}": max(at - reached, 0.0) for step, reached in totals["watermarks"].items()}


def _grown(totals: Figures, before: Figures) -> Figures:
    """What has happened between two totals, and what was measured."""
    return {k: v if k.startswith(MEASURED) else max(v - before.get(k, 0.0), 0.0) for k, v in totals.items()}


def _chosen(figures: Figures, step: str) -> Figures:
    return of_step(figures, step) if step else of_job(figures)


def _recent(found: JobHistory, since: float, step: str) -> list[Point]:
    return found.recent.of_step(since, step) if step else found.whole.since(since)


def _is_due(job: str, found: JobHistory, now: float) -> bool:
    """Whether what waits of a job is written now; each has its own second, so that no look has much to write."""
    width, own = LEVELS[0][0], zlib.crc32(job.encode()) % LEVELS[0][0]
    return (now - own) // width != (found.written - own) // width


def buckets(points: Iterable[Point], width: float) -> Iterator[Point]:
    """Points put together by stretches of so many seconds.

    >>> [p.figures for p in buckets([Point(1, {"rows": 1}), Point(9, {"rows": 2}), Point(10, {"rows": 3})], 10)]
    [{'rows': 3.0}, {'rows': 3.0}]
    """
    for at, some in groupby(points, key=lambda point: point.time // width * width):
        yield together(some, at)


def _fitting(seconds: float) -> float:
    """The width of points that is small enough to show something, and large enough not to be too many."""
    widths = (10.0, 60.0, 150.0, 600.0, 1_800.0, 3_600.0, 21_600.0, 86_400.0)
    return next((width for width in widths if seconds / width <= MOST_POINTS), widths[-1])


def _write(found: Connection, job: str, level: int, points: Iterable[Point]) -> None:
    for point in points:
        row = found.execute(
            "select steps from figures where job = ? and level = ? and time = ?", (job, level, point.time)
        ).fetchone()
        if row is not None:
            point = together([Point(point.time, _unpacked(row[0])), point], point.time)
        kept = {k: round(v, 3) for k, v in point.figures.items() if v or k.startswith(MEASURED)}
        whole, steps = json.dumps(of_job(kept)), zlib.compress(json.dumps(kept).encode(), 1)
        found.execute(
            "insert into figures values (?, ?, ?, ?, ?) on conflict (job, level, time) do update set whole = excluded.whole, steps = excluded.steps",
            (job, level, point.time, whole, steps),
        )


def _unpacked(blob: bytes) -> Figures:
    made: Figures = json.loads(zlib.decompress(blob))
    return made


def _roll(found: Connection, job: str, now: float) -> None:
    """Puts points together that are complete at the next level, and deletes those that are too old."""
    for level, (width, _) in enumerate(LEVELS[1:], 1):
        (last,) = found.execute("select max(time) from figures where job = ? and level = ?", (job, level)).fetchone()
        since, until = -1.0 if last is None else last + width, now // width * width
        rows = found.execute(
            "select time, steps from figures where job = ? and level = ? and time >= ? and time < ? order by time",
            (job, level - 1, since, until),
        ).fetchall()
        _write(found, job, level, buckets([Point(at, _unpacked(blob)) for at, blob in rows], width))
    for level, (_, kept) in enumerate(LEVELS):
        found.execute("delete from figures where job = ? and level = ? and time < ?", (job, level, now - kept))
