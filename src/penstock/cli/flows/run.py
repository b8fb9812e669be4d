"""`penstock run`: a flow on Spark, with its progress in front of you."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Annotated, cast

import typer

from penstock.cli.options import FlowTarget, one_of, option, run_options
from penstock.cli.output.display import Display, Extra, Progress, display_for
from penstock.cli.output.failure import handled
from penstock.cli.output.progress import Tally
from penstock.errors import OptionError, PenstockError
from penstock.flowfiles.substitution import filtered
from penstock.graph.graph import Graph
from penstock.graph.run import RunSpec
from penstock.jobs.launch import Watchers
from penstock.jobs.load import LoadedFlow, load_flow
from penstock.jobs.logs import configure, event, log_batches, log_failure
from penstock.jobs.metrics import Metrics
from penstock.jobs.run import graph_of, start, use_py_files
from penstock.jobs.signals import stop_signals
from penstock.live.report import Observer
from penstock.live.until import StopTest


@dataclass(frozen=True)
class Screen:
    """What a person sees of a run."""

    progress: Progress = "auto"
    extra: Extra | None = None
    lines_to: IO[str] | None = None


@run_options("run")
def run(
    target: FlowTarget,
    progress: Annotated[str, option(help="auto, plain or none.")] = "auto",
    quiet: Annotated[bool, option("--quiet", "-q", help="The same as --progress none.")] = False,
    properties: Annotated[
        str, option("--properties", metavar="FILE", help="Properties that stand for ${name} in a Flux file.")
    ] = "",
    debug: Annotated[bool, option("--debug", help="Show full tracebacks.")] = False,
    **options: object,
) -> None:
    """Run a flow: live until you stop it, or --once, or --batch. Ctrl-C ends it after the current batch."""
    with handled(debug=debug, as_json=bool(options["json_logs"])):
        screen = Screen("none" if quiet else checked_progress(progress))
        asked = RunSpec.of(**options)
        configure_logs(asked)
        use_py_files(asked.py_files)
        flow = load_flow(target, filtered(properties))
        spec = RunSpec.of(**_with_own(flow, options))
        configure_logs(spec)
        watched(flow, spec, screen)


def _with_own(flow: LoadedFlow, given: Mapping[str, object]) -> dict[str, object]:
    """The options of the command, and those that the file of the flow sets where the command says nothing."""
    said = {name: value for name, value in given.items() if value not in (None, False, [])}
    own = {n: v for n, v in flow.options.items() if n != "mode" or not {"once", "batch"} & said.keys()}
    return own | said


def run_flow(flow: object, **given: object) -> None:
    """What `ps.run` does: the same, with a flow in hand and the options by name."""
    graph = graph_of(flow)
    screen, until = Screen(checked_progress(given.pop("progress", "auto"))), given.pop("until", None)
    spec = _spec(given)
    configure_logs(spec)
    try:
        watched(flow, spec, screen, cast("StopTest | None", until))
    except PenstockError as error:
        if spec.json_logs:
            log_failure(error, flow=graph.name)
        raise


def _spec(given: dict[str, object]) -> RunSpec:
    spec = given.pop("spec", None)
    if spec is None:
        return RunSpec.of(**given)
    if not isinstance(spec, RunSpec) or given:
        raise OptionError(f"spec is a RunSpec, and stands instead of other options, got {spec!r} and {given}")
    return spec


def configure_logs(spec: RunSpec) -> None:
    """Logs of the wanted kind; for people, only what is wrong, since they see the progress."""
    configure(spec.log_level or ("info" if spec.json_logs else "warning"), as_json=spec.json_logs)


def checked_progress(given: object) -> Progress:
    """One of the ways to show progress."""
    return cast("Progress", one_of("--progress", given, "auto", "plain", "none"))


def watched(flow: object, spec: RunSpec, screen: Screen, until: StopTest | None = None) -> Tally:
    """Runs a flow, shows its progress and takes Ctrl-C; returns the sums of the run."""
    graph = graph_of(flow)
    tally = Tally(graph, spec.mode)
    progress: Progress = "none" if spec.json_logs and screen.progress == "auto" else screen.progress
    metrics = _metrics(graph, spec)
    try:
        with display_for(tally, progress, extra=screen.extra, lines_to=screen.lines_to) as display:
            _follow(flow, spec, display, Watchers(_observers(display, graph, spec, metrics), until, display.tell))
    finally:
        if metrics is not None:
            metrics.close()
    return tally


def _follow(flow: object, spec: RunSpec, display: Display, watchers: Watchers) -> None:
    """Starts the run and waits for its end."""
    running = start(spec, flow, watchers)
    with stop_signals(running.stop, display.force):
        while not (status := running.wait(1.0)).has_ended:
            display.show_batch(status.under_way)


def _observers(display: Display, graph: Graph, spec: RunSpec, metrics: Metrics | None) -> tuple[Observer, ...]:
    logs = [log_batches(graph.name)] if spec.json_logs or spec.log_level in ("info", "debug") else []
    return (*logs, *([metrics] if metrics is not None else []), display)


def _metrics(graph: Graph, spec: RunSpec) -> Metrics | None:
    if spec.metrics_port is None:
        return None
    made = Metrics(graph.name, [s.name for s in graph.sources])
    port = made.serve(spec.metrics_port, spec.metrics_host)
    address = f"http://{spec.metrics_host}:{port}/metrics"
    event("metrics", flow=graph.name, address=address)
    if not spec.json_logs:
        typer.echo(f"{graph.name}: metrics at {address}", err=True)
    return made
