"""Starts a run without blocking: `start(spec, flow)` returns a `Run` that is waited for, stopped and asked how it is."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.errors import FlowError, OptionError
from penstock.graph.graph import Graph
from penstock.graph.run import RunSpec
from penstock.jobs.launch import Launch, Watchers
from penstock.jobs.load import LoadedFlow


@dataclass(frozen=True)
class RunStatus:
    """How a run is: its phase ("starting", "running", "stopping", "stopped" or "failed"), its batches and records, what ended it."""

    flow: str
    phase: str
    batches: int = 0
    rows_in: int = 0
    error: BaseException | None = None
    under_way: str = ""
    """The batch under way: `batch 3: 4,000 rows, 1 of 2 tasks, 61 s`; empty between batches."""
    waits_since: float | None = None
    """Since when (Unix) all sources were asked and none had anything; None while there is something to do."""

    @property
    def has_ended(self) -> bool:
        """Whether nothing runs any more."""
        return self.phase in ("stopped", "failed")


class Run:
    """A run in a thread of its own. It takes no signals and prints nothing."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"penstock-{launch.graph.name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._launch.run()
        except BaseException as error:  # whatever it is, it belongs to who waits
            self._error = error

    def wait(self, timeout: float | None = None) -> RunStatus:
        """Waits for the end, or for so many seconds; raises what ended the run if that was an error."""
        self._thread.join(timeout)
        if not self._thread.is_alive() and self._error is not None:
            raise self._error
        return self.status()

    def stop(self) -> None:
        """Ends the run after the current batch; returns at once. A run over bounded data is given up."""
        if self._thread.is_alive():
            self._launch.ask_to_stop()

    @property
    def spark_log(self) -> str:
        """Where Spark's own log is on this machine; empty where its settings say otherwise, or before Spark is there."""
        return self._launch.spark_log

    def set_spark_log(self, level: str) -> bool:
        """Has Spark log from a level on (DEBUG, INFO, WARN, ERROR); False where it is not there yet."""
        return self._launch.set_spark_log(level)

    def status(self) -> RunStatus:
        """How the run is right now."""
        launch = self._launch
        ended = "failed" if self._error is not None else "stopped"
        phase = launch.phase if self._thread.is_alive() else ended
        is_running = phase == "running"
        under_way, waits = (launch.under_way(), launch.waits_since()) if is_running else ("", None)
        return RunStatus(launch.graph.name, phase, launch.batches, launch.rows_in, self._error, under_way, waits)


def start(spec: RunSpec, flow: object, watchers: Watchers | None = None) -> Run:
    """Starts a flow (a Flow, a Topology, a Graph, or what `load_flow` returned) and returns at once.

    What cannot work at all (options that do not fit, a checkpoint of another flow) raises here, before Spark is started.

        run = start(RunSpec(mode="once"), load_flow("flows/count.py"))
        run.status().phase      # "starting"
        run.wait()
    """
    graph, folder = graph_of(flow), _folder_of(flow)
    use_py_files(spec.py_files)
    spec = (
        replace(spec, by_value=(*spec.by_value, flow.module)) if isinstance(flow, LoadedFlow) and flow.module else spec
    )
    revise = flow.revise if isinstance(flow, LoadedFlow) else None
    launch = Launch(graph, spec, watchers, folder=folder, revise=revise)
    launch.check()
    return Run(launch)


def graph_of(flow: object) -> Graph:
    """The graph of a flow; raises FlowError for what is none."""
    graph = flow if isinstance(flow, Graph) else getattr(flow, "graph", None)
    if not isinstance(graph, Graph):
        raise FlowError(f"a run needs a flow, such as ps.Flow('name'), got {flow!r}")
    return graph


def use_py_files(files: Iterable[str]) -> None:
    """Makes `--py-files` importable in this process, before Spark is there; call it before the flow's file is loaded."""
    for file in files:
        path = Path(file)
        if "://" in file:
            continue
        if not path.exists():
            raise OptionError(f"--py-files: there is no {file}")
        found = str((path if path.suffix in (".zip", ".egg") else path.parent).absolute())
        if found not in sys.path:
            sys.path.insert(0, found)


def _folder_of(flow: object) -> Path | None:
    """Where the user's modules are: beside the file of the flow, or beside the program itself."""
    if isinstance(flow, LoadedFlow):
        return flow.folder
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return Path(file).absolute().parent if file else None
