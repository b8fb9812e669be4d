"""`RunSpec`: everything that a run of a flow is configured with."""

# ruff: noqa: RUF009 - option(...) makes a field

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from penstock.errors import OptionError, nearest
from penstock.graph.run.kinds import (
    Json,
    address,
    choice,
    count,
    directory,
    flag,
    listed,
    maybe_span,
    moment,
    names,
    pairs,
    power_of_two,
    span,
    text,
    url,
    whole,
)
from penstock.graph.run.option import Option, option, option_of
from penstock.graph.state.key_groups import KEY_GROUPS, SLOTS
from penstock.location import Address, Location

MODES = ("live", "once", "batch")
"""Until it is stopped; over what is there; once over bounded data."""
LEVELS = ("debug", "info", "warning", "error")
"""How much is logged."""


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """How to run a flow: frozen, checked when it is made, and the same whether it comes from code, a command line, the environment or JSON.

    `RunSpec(...)` takes values of the types that the fields have; `RunSpec.of(...)` also what people write, such as `"20s"`. Raises
    OptionError for an option that is wrong or does not go with another. The options are in the settings reference.

    >>> import penstock as ps
    >>> ps.RunSpec(mode="once", checkpoint="kept").is_once
    True
    """

    mode: str = option(
        "live",
        choice(*MODES),
        "live until it is stopped; once over what is there, keeping its checkpoint; or batch, once over bounded data",
        flag="",
    )
    duration: float | None = option(
        None, maybe_span(), "Stop after this time: 500ms, 20s, 5m, 1h.", flag="--for", is_live=True
    )
    batches: int | None = option(None, whole(1), "Stop after so many batches.", is_live=True)
    records: int | None = option(None, whole(1), "Stop after so many records.", is_live=True)
    until_time: int | None = option(None, moment(), "Stop when event time has reached this moment.", is_live=True)
    until_idle: float | None = option(
        None, maybe_span(), "Stop when the sources had nothing for this time.", is_live=True
    )
    drain: bool = option(False, flag(), "At the end let all time pass: windows close, timers fire.")
    interval: float = option(0.0, span(), "Time between the starts of batches; 0s is as fast as it goes.", shown="0s")
    batch_seconds: float = option(2.0, span(0.1), "How long a batch should last, where a source adapts.", shown="2s")
    max_rows: int | None = option(None, whole(1), "What such a source takes in for one batch.")
    checkpoint: Address | None = option(
        None,
        address(),
        "The checkpoint: a directory, or the URL of a storage that machines share.",
        shown=".penstock/FLOW",
        is_live=True,
    )
    standby: bool = option(
        False, flag(), "Wait while another driver runs the flow, and take over when its lease ends.", is_live=True
    )
    lease: float = option(
        10.0,
        span(0.5),
        "How long a driver of a checkpoint that is a URL may be silent before another takes over.",
        shown="10s",
        is_live=True,
    )
    fresh: bool = option(False, flag(), "Forget the checkpoint and start over.", is_live=True)
    savepoint: str = option(
        "", text("SAVEPOINT"), "Start from a savepoint: a name or a path.", flag="--from", is_live=True
    )
    drop_state: tuple[str, ...] = option(
        (), names("STEP"), "The state of this step may be dropped if it does not fit.", is_live=True
    )
    rename_state: dict[str, str] = option(
        {}, pairs("OLD=NEW", "counts=totals"), "A step has another name now and keeps its state.", is_live=True
    )
    stalled_after: float = option(
        600.0,
        span(0.1),
        "Say that a batch stands still after this time without a task that ends, or a sink that answers.",
        shown="10m",
        is_live=True,
    )
    kill_stalled_after: float | None = option(
        None,
        maybe_span(),
        "Kill the Python workers of such a batch after this time, or break off the sink.",
        shown="never",
        is_live=True,
    )
    keep_versions: int = option(20, count(2), "How many versions of the state are kept.", shown="20")
    parallelism: int | None = option(None, whole(1, SLOTS), "Tasks of a keyed step.", shown="cores")
    key_groups: int | None = option(
        None,
        power_of_two(SLOTS),
        "Parts in which keys move between tasks, and so the most tasks of a keyed step; chosen once per checkpoint.",
        shown=str(KEY_GROUPS),
        is_live=True,
    )
    place: tuple[str, ...] = option(
        (),
        names("RULE"),
        "Where steps run: together=A,B in one pass, apart=A,B in different worker processes, alone=A without other tasks in its executor; what cannot be kept is refused.",
    )
    master: str = option("", text("URL"), "Spark's master.", shown="local[*,4]")
    conf: dict[str, str] = option({}, pairs(example="spark.executor.memory=4g"), "A Spark setting.")
    packages: tuple[str, ...] = option((), listed(), "Maven coordinates of JARs, with commas between.")
    py_files: tuple[str, ...] = option((), listed(), "Python files or zips for the workers, with commas between.")
    archives: tuple[str, ...] = option(
        (),
        listed(),
        "Archives for the workers, FILE or FILE#NAME, with commas between; Python comes from the one of `penstock pack`.",
    )
    properties_file: Path | None = option(None, directory("FILE"), "A file of Spark settings.")
    json_logs: bool = option(False, flag(), "Log each event as a line of JSON.")
    log_level: str = option("", choice("", *LEVELS), "How much is logged.", shown="warning")
    metrics_port: int | None = option(None, whole(0, 65535), "Serve Prometheus metrics; 0 takes a free port.")
    metrics_host: str = option("127.0.0.1", text("HOST"), "The address metrics are served at.", shown="127.0.0.1")
    otel: str = option("", url(), "Send a trace of each batch to an OpenTelemetry collector (OTLP over HTTP).")
    by_value: tuple[str, ...] = option(
        (), names("MODULE"), "Modules whose code travels inside the functions that use it.", flag=""
    )
    dead_letters: Address | None = option(
        None, address(), "Where a bounded run leaves the dead letters that no sink takes.", flag=""
    )

    def __post_init__(self) -> None:
        for name, declared in run_options().items():
            object.__setattr__(self, name, declared.read(getattr(self, name)))
        if self.mode == "batch":
            self._check_bounded()
        if self.standby and not isinstance(self.checkpoint, Location):
            raise OptionError(
                "--standby waits for the lease of a checkpoint that is a URL, such as s3://bucket/flow or file:///mnt/shared/flow; "
                f"got {'none' if self.checkpoint is None else self.checkpoint}"
            )

    def _check_bounded(self) -> None:
        """Options of live runs are refused, but for a URL: on a cluster it is where tasks find what the run keeps until its end."""
        given = [o for o in run_options().values() if o.is_live and getattr(self, o.name) != o.default]
        wrong = [o.label for o in given if not (o.name == "checkpoint" and isinstance(self.checkpoint, Location))]
        if wrong:
            raise OptionError(
                f"--batch runs once over bounded data, from nothing to its end; leave out {', '.join(wrong)}"
            )

    @property
    def is_once(self) -> bool:
        """Whether the run ends when it has processed what was there."""
        return self.mode == "once"

    def checkpoint_of(self, flow: str) -> Address:
        """The checkpoint of a flow.

        Args:
            flow: the name of the flow.

        Returns:
            An absolute path, or a URL.
        """
        return (self.checkpoint or Path(".penstock") / flow).absolute()

    @classmethod
    def of(cls, **options: object) -> RunSpec:
        """A spec of what people write.

        Args:
            options: the options by name, `once=True` and `batch=True` among them; those that are None have their defaults.

        Returns:
            The spec.

        Raises:
            OptionError: an option is not one (the message has the nearest name), or two exclude each other.

        >>> import penstock as ps
        >>> ps.RunSpec.of(once=True, duration="1m30s").duration
        90.0
        """
        given = {k: v for k, v in options.items() if v is not None}
        mode = _mode(given)
        return cls(**_read(given), **({"mode": mode} if mode else {}))  # type: ignore[arg-type]  # read by their kinds

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> RunSpec:
        """A spec of the variables `PENSTOCK_RUN_...`: those of the options, `PENSTOCK_RUN_ONCE` and `PENSTOCK_RUN_BATCH`.

        Args:
            environ: the variables; else those of the process.

        Returns:
            The spec.

        Raises:
            OptionError: a value is not one.

        >>> import penstock as ps
        >>> ps.RunSpec.from_environment({"PENSTOCK_RUN_FOR": "20s", "PENSTOCK_RUN_ONCE": "1"}).mode
        'once'
        """
        found = os.environ if environ is None else environ
        given: dict[str, object] = {
            w: found[f"PENSTOCK_RUN_{w.upper()}"] for w in _WORDS if f"PENSTOCK_RUN_{w.upper()}" in found
        }
        for declared in run_options().values():
            text = next((found[v] for v in declared.variables if found.get(v)), None)
            if text is not None:
                given[declared.name] = declared.read_text(text)
        return cls.of(**given)

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> RunSpec:
        """A spec of plain values, as `to_dict` makes them.

        Args:
            values: the options by name; what is missing has its default.

        Returns:
            The spec.

        Raises:
            OptionError: an option is not one.
        """
        return cls.of(**values)

    @classmethod
    def from_json(cls, text: str | bytes) -> RunSpec:
        """A spec of a JSON object.

        Args:
            text: the JSON.

        Returns:
            The spec.

        Raises:
            OptionError: it is no JSON object, or an option is not one.

        >>> import penstock as ps
        >>> spec = ps.RunSpec.of(once=True)
        >>> ps.RunSpec.from_json(spec.to_json()) == spec
        True
        """
        try:
            values = json.loads(text)
        except ValueError as error:
            raise OptionError(f"the options of a run are a JSON object; this is not JSON: {error}") from None
        if not isinstance(values, dict):
            raise OptionError(f"the options of a run are a JSON object, got {values!r}")
        return cls.from_dict(values)

    def to_dict(self) -> dict[str, Json]:
        """All options as plain values that JSON has.

        Returns:
            The values by name.
        """
        return {name: declared.write(getattr(self, name)) for name, declared in run_options().items()}

    def to_json(self) -> str:
        """All options as a JSON object, which `from_json` reads.

        Returns:
            The JSON.
        """
        return json.dumps(self.to_dict(), indent=1)


_WORDS = ("once", "batch")
"""The modes that can be said by a word of their own."""


@cache
def run_options() -> dict[str, Option[object]]:
    """The options of a run by name, in the order in which they are declared."""
    return {declared.name: option_of(declared) for declared in fields(RunSpec)}


def _read(given: Mapping[str, object]) -> dict[str, object]:
    known = run_options()
    for name in given:
        if name not in known:
            raise OptionError(f"a run has no option {name!r}; {nearest(name, [*_WORDS, *known])}")
    return {name: known[name].read(value) for name, value in given.items()}


def _is_said(word: str, value: object) -> bool:
    try:
        return flag().read(value)
    except ValueError as error:
        raise OptionError(f"--{word}: {error}, got {value!r}") from None


def _mode(given: dict[str, object]) -> str:
    """The mode that the words `once` and `batch` say; they are taken out of what is given."""
    words = [w for w in _WORDS if w in given and _is_said(w, given.pop(w))]
    if len(words) == 2:
        raise OptionError("--batch and --once exclude each other: --once is live and keeps its checkpoint")
    if words and given.get("mode", words[0]) != words[0]:
        raise OptionError(f"{words[0]} and mode={given['mode']!r} exclude each other")
    given.pop("mode", None) if words else None
    return words[0] if words else ""
