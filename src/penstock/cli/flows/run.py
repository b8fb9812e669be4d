"""`penstock run`: a flow on Spark, with its progress in front of you."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.cli.duration import seconds
from penstock.cli.load import Loaded, load_flow
from penstock.cli.options import option
from penstock.cli.output.display import Display, Extra, Progress, display_for
from penstock.cli.output.failure import handled
from penstock.cli.output.progress import Tally
from penstock.errors import FlowError, PenstockError
from penstock.graph.graph import Graph
from penstock.graph.times import to_micros
from penstock.jobs.launch import Launch, LaunchOptions, Mode, SparkOptions
from penstock.jobs.logs import LEVELS, configure, event, log_batches, log_failure
from penstock.jobs.metrics import Metrics
from penstock.spark.live.report import Observer
from penstock.spark.live.until import Until


@dataclass(frozen=True)
class Watch:
    """How a run is watched."""

    progress: Progress = "auto"
    json_logs: bool = False
    log_level: str = ""
    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"
    observers: tuple[Observer, ...] = field(default=())
    extra: Extra | None = None
    lines_to: Any = None


def run(  # noqa: PLR0913 - each is an option of the command
    target: Annotated[str, typer.Argument(help="FILE.py[:flow] or package.module[:flow]", show_default=False)],
    batch: Annotated[bool, option("--batch", help="Run once over bounded data, as one batch.")] = False,
    once: Annotated[bool, option("--once", help="Process what is there, then stop; goes on where it was.")] = False,
    duration: Annotated[
        str,
        option(
            "--for",
            envvar=["PENSTOCK_RUN_FOR", "PENSTOCK_RUN_DURATION"],
            help="Stop after this time: 500ms, 20s, 5m, 1h.",
        ),
    ] = "",
    batches: Annotated[int | None, option(min=1, help="Stop after so many batches.", show_default=False)] = None,
    records: Annotated[int | None, option(min=1, help="Stop after so many records.", show_default=False)] = None,
    until_time: Annotated[str, option(help="Stop when event time has come to this moment.")] = "",
    until_idle: Annotated[str, option(help="Stop when no record has come for this time.")] = "",
    drain: Annotated[bool, option("--drain", help="At the end let all time pass: windows close, timers fire.")] = False,
    interval: Annotated[str, option(help="Time between the starts of batches; 0s is as fast as it goes.")] = "0s",
    batch_seconds: Annotated[float, option(min=0.1, help="How long a batch shall last, where a source adapts.")] = 2.0,
    max_rows: Annotated[int | None, option(min=1, help="What such a source takes in for one batch.")] = None,
    checkpoint: Annotated[
        Path | None, option(help="Where the flow keeps its place.", show_default=".penstock/FLOW")
    ] = None,
    fresh: Annotated[bool, option("--fresh", help="Forget the checkpoint and begin anew.")] = False,
    savepoint: Annotated[
        str,
        option(
            "--from", envvar="PENSTOCK_RUN_FROM", metavar="SAVEPOINT", help="Begin from a savepoint: a name or a path."
        ),
    ] = "",
    drop_state: Annotated[
        list[str] | None, option("--drop-state", metavar="STEP", help="What this step keeps may go if it does not fit.")
    ] = None,
    keep_versions: Annotated[int, option(min=2, help="How many versions of the state are kept.")] = 20,
    parallelism: Annotated[int | None, option(min=1, help="Tasks of a keyed step.", show_default="cores")] = None,
    master: Annotated[str | None, option(help="Spark's master.", show_default="local[*,4]")] = None,
    conf: Annotated[list[str] | None, option("--conf", metavar="KEY=VALUE", help="A Spark setting.")] = None,
    packages: Annotated[str, option(help="Maven coordinates of JARs, with commas between.")] = "",
    py_files: Annotated[str, option(help="Python files or zips for the workers, with commas between.")] = "",
    properties_file: Annotated[Path | None, option(help="A file of Spark settings.")] = None,
    json_logs: Annotated[bool, option("--json-logs", help="Log each event as a line of JSON.")] = False,
    log_level: Annotated[str, option(help="debug, info, warning or error.")] = "",
    metrics_port: Annotated[
        int | None, option(help="Serve Prometheus metrics; 0 takes a free port.", min=0, max=65535)
    ] = None,
    metrics_host: Annotated[str, option(help="The address metrics are served at.")] = "127.0.0.1",
    progress: Annotated[str, option(help="auto, plain or none.")] = "auto",
    quiet: Annotated[bool, option("--quiet", "-q", help="The same as --progress none.")] = False,
    debug: Annotated[bool, option("--debug", help="Show whole tracebacks.")] = False,
) -> None:
    """Run a flow: live until you stop it, or --once, or --batch. Ctrl-C ends it after the batch at hand."""
    with handled(debug=debug, as_json=json_logs):
        configure_logs(log_level, json_logs)
        spark = spark_options(master, conf or [], packages, py_files, properties_file)
        spark = replace(spark, log_level="info" if log_level == "debug" else "warn")
        options = launch_options(batch, once, duration, interval, checkpoint, fresh, parallelism, spark)
        options = ending(options, batches, records, until_time, until_idle, drain)
        options = replace(options, batch_seconds=batch_seconds, max_rows=max_rows)
        options = beginning(options, savepoint, drop_state or (), keep_versions)
        watch = Watch("none" if quiet else checked_progress(progress), json_logs, log_level, metrics_port, metrics_host)
        _find_py_files(spark.py_files)
        loaded = load_flow(target)
        watched(loaded.graph, _of(loaded, options), watch)


def run_flow(flow: Any, **given: Any) -> None:
    """What `ps.run` does: the same, with a flow in hand and the options by name."""
    graph = flow if isinstance(flow, Graph) else getattr(flow, "graph", None)
    if not isinstance(graph, Graph):
        raise FlowError(f"ps.run needs a flow, such as ps.Flow('name'), got {flow!r}")
    known = {
        "batch",
        "batches",
        "drain",
        "drop_state",
        "keep_versions",
        "once",
        "savepoint",
        "records",
        "until",
        "until_idle",
        "until_time",
        "duration",
        "batch_seconds",
        "interval",
        "max_rows",
        "checkpoint",
        "fresh",
        "parallelism",
        "master",
        "conf",
        "packages",
    }
    known |= {"py_files", "properties_file", "progress", "json_logs", "log_level", "metrics_port", "metrics_host"}
    unknown = sorted(set(given) - known)
    if unknown:
        raise FlowError(f"ps.run has no option {unknown[0]!r}; it has: {', '.join(sorted(known))}")
    try:
        options, watch = _options_by_name(given), _watch_by_name(given)
        configure_logs(watch.log_level, watch.json_logs)
    except typer.BadParameter as error:
        raise ValueError(f"ps.run: {error.message}") from None
    try:
        watched(graph, replace(options, folder=_main_folder()), watch)
    except PenstockError as error:
        if watch.json_logs:
            log_failure(error, flow=graph.name)
        raise


def _main_folder() -> Path | None:
    """The folder of the program itself."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return Path(file).absolute().parent if file else None


def _options_by_name(given: Mapping[str, Any]) -> LaunchOptions:
    conf = [f"{k}={v}" for k, v in (given.get("conf") or {}).items()]
    files = given.get("py_files") or ""
    joined = files if isinstance(files, str) else ",".join(map(str, files))
    spark = spark_options(given.get("master"), conf, given.get("packages", ""), joined, given.get("properties_file"))
    checkpoint = Path(given["checkpoint"]) if given.get("checkpoint") else None
    options = launch_options(
        given.get("batch", False),
        given.get("once", False),
        str(given.get("duration") or ""),
        str(given.get("interval") or "0s"),
        checkpoint,
        given.get("fresh", False),
        given.get("parallelism"),
        spark,
    )
    options = ending(
        options,
        given.get("batches"),
        given.get("records"),
        str(given.get("until_time") or ""),
        str(given.get("until_idle") or ""),
        given.get("drain", False),
    )
    dropped = given.get("drop_state") or ()
    dropped = (dropped,) if isinstance(dropped, str) else dropped
    options = beginning(options, str(given.get("savepoint") or ""), dropped, int(given.get("keep_versions") or 20))
    seconds_of = float(given.get("batch_seconds") or 2.0)
    options = replace(options, batch_seconds=seconds_of, max_rows=given.get("max_rows"))
    return replace(options, until=replace(options.until, test=given.get("until")))


def _watch_by_name(given: Mapping[str, Any]) -> Watch:
    progress = checked_progress(given.get("progress", "auto"))
    return Watch(
        progress,
        given.get("json_logs", False),
        given.get("log_level", ""),
        given.get("metrics_port"),
        given.get("metrics_host", "127.0.0.1"),
    )


def configure_logs(level: str, as_json: bool) -> None:
    """Logs of the wanted kind; for people, only what is wrong, since they see the progress."""
    if level and level not in LEVELS:
        raise typer.BadParameter(f"--log-level is one of {', '.join(LEVELS)}, got {level!r}")
    configure(level or ("info" if as_json else "warning"), as_json=as_json)


def watched(graph: Graph, options: LaunchOptions, watch: Watch) -> Tally:
    """Runs a flow and shows its progress; gives the sums of the run."""
    tally = Tally(graph, options.mode)
    progress: Progress = "none" if watch.json_logs and watch.progress == "auto" else watch.progress
    metrics = _metrics(graph, watch)
    try:
        with display_for(tally, progress, extra=watch.extra, lines_to=watch.lines_to) as display:
            Launch(
                graph, options, _observers(display, graph, watch, metrics), tell=display.tell, force=display.force
            ).run()
    finally:
        if metrics is not None:
            metrics.close()
    return tally


def _observers(display: Display, graph: Graph, watch: Watch, metrics: Metrics | None) -> tuple[Observer, ...]:
    logs = [log_batches(graph.name)] if watch.json_logs or watch.log_level in ("info", "debug") else []
    return (*watch.observers, *logs, *([metrics] if metrics is not None else []), display)


def _metrics(graph: Graph, watch: Watch) -> Metrics | None:
    if watch.metrics_port is None:
        return None
    made = Metrics(graph.name, [s.name for s in graph.sources])
    port = made.serve(watch.metrics_port, watch.metrics_host)
    address = f"http://{watch.metrics_host}:{port}/metrics"
    event("metrics", flow=graph.name, address=address)
    if not watch.json_logs:
        typer.echo(f"{graph.name}: metrics at {address}", err=True)
    return made


def launch_options(
    batch: bool,
    once: bool,
    duration: str,
    interval: str,
    checkpoint: Path | None,
    fresh: bool,
    parallelism: int | None,
    spark: SparkOptions,
) -> LaunchOptions:
    """The options of a launch, checked against each other."""
    if batch and once:
        raise typer.BadParameter("--batch and --once exclude each other: --once is live and remembers its place")
    if batch and (duration or checkpoint or fresh):
        raise typer.BadParameter(
            "--batch runs over bounded data from nothing: --for, --checkpoint and --fresh do not go with it"
        )
    mode: Mode = "batch" if batch else "once" if once else "live"
    span = seconds(duration) if duration else None
    return LaunchOptions(mode, checkpoint, fresh, seconds(interval), span, parallelism, spark=spark)


def beginning(options: LaunchOptions, savepoint: str, drop_state: Iterable[str], keep_versions: int) -> LaunchOptions:
    """The options, with what the run begins from."""
    dropped = tuple(drop_state)
    if options.mode == "batch" and (savepoint or dropped):
        raise typer.BadParameter("--batch begins from nothing: --from and --drop-state do not go with it")
    return replace(options, savepoint=savepoint, drop_state=dropped, keep_versions=keep_versions)


def ending(
    options: LaunchOptions, batches: int | None, records: int | None, time: str, idle: str, drain: bool
) -> LaunchOptions:
    """The options, with what ends the run."""
    if options.mode == "batch" and (batches or records or time or idle):
        raise typer.BadParameter(
            "--batch ends with its data: --batches, --records, --until-time, --until-idle do not go with it"
        )
    quiet = seconds(idle) if idle else None
    return replace(options, until=Until(batches, records, _moment(time), quiet), drain=drain)


def _moment(text: str) -> int | None:
    """A moment such as 2024-05-01T12:00, in microseconds; in UTC unless it says otherwise."""
    try:
        return to_micros(datetime.datetime.fromisoformat(text)) if text else None
    except ValueError:
        raise typer.BadParameter(f"--until-time takes a moment such as 2024-05-01T12:00:00, got {text!r}") from None


def spark_options(
    master: str | None, conf: Iterable[str], packages: str, py_files: str, properties_file: Path | None
) -> SparkOptions:
    """The options for Spark, checked."""
    pairs = [text.partition("=") for text in conf]
    wrong = [key for key, equals, _ in pairs if not equals or not key]
    if wrong:
        raise typer.BadParameter(f"--conf takes KEY=VALUE, such as spark.executor.memory=4g, got {wrong[0]!r}")
    files = tuple(f for f in py_files.split(",") if f)
    settings = {key.strip(): value for key, _, value in pairs}
    return SparkOptions(master, settings, packages, files, Path(properties_file) if properties_file else None)


def checked_progress(given: str) -> Progress:
    """One of the ways to show progress."""
    if given not in ("auto", "plain", "none"):
        raise typer.BadParameter(f"--progress is auto, plain or none, got {given!r}")
    return given  # type: ignore[return-value]  # checked just above


def _find_py_files(files: Iterable[str]) -> None:
    """Lets the flow's file import from them, before Spark is there."""
    for file in files:
        place = Path(file)
        if "://" in file:
            continue
        if not place.exists():
            raise typer.BadParameter(f"--py-files: there is no {file}")
        sys.path.insert(0, str((place if place.suffix in (".zip", ".egg") else place.parent).absolute()))


def _of(loaded: Loaded, options: LaunchOptions) -> LaunchOptions:
    return replace(options, module=loaded.module, folder=loaded.folder)
