"""Flux's wrappers for programs of other languages, under their names: the streams of a component are said by methods after it is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.graph.logic.topology.components import Bolt
from penstock.graph.logic.topology.tuples import DEFAULT
from penstock.graph.multilang.fields import outputs_of
from penstock.graph.multilang.process import LOG
from penstock.graph.multilang.shell import ShellBolt, ShellComponent, ShellSpout


class FluxShell(ShellComponent):
    """What both wrappers have: `setDefaultStream`, `setNamedStream` and `addComponentConfig`."""

    def work_in(self, folder: Path) -> None:
        """The program runs beside the file, in its folder `resources` where there is one."""
        from dataclasses import replace

        resources = folder / "resources"
        self._spec = replace(self._spec, cwd=str(resources if resources.is_dir() else folder))

    def setDefaultStream(self, *args: Any) -> None:  # noqa: N802 - Flux's name
        """The fields of the default stream, and before them whether it is direct."""
        self.setNamedStream(DEFAULT, *args)

    def setNamedStream(self, name: str, *args: Any) -> None:  # noqa: N802 - Flux's name
        """The fields of a stream, and before them whether it is direct."""
        *direct, fields = args
        self._streams = {**self._streams, name: outputs_of(list(fields))}
        self.outputs = {stream: each.schema for stream, each in self._streams.items()}
        if direct and direct[0]:
            self.direct = (*self.direct, name)

    def addComponentConfig(self, key: str, value: Any) -> None:  # noqa: N802 - Flux's name
        """A setting of the component."""
        self.config = {**self.config, key: value}


class FluxShellBolt(FluxShell, ShellBolt):
    """`org.apache.storm.flux.wrappers.bolts.FluxShellBolt`."""

    def __init__(self, command: list[str], outputs: list[str] | None = None) -> None:
        super().__init__(command, list(outputs) if outputs else None)


class FluxShellSpout(FluxShell, ShellSpout):
    """`org.apache.storm.flux.wrappers.spouts.FluxShellSpout`."""

    def __init__(self, command: list[str], outputs: list[str] | None = None) -> None:
        super().__init__(command, list(outputs) if outputs else None)


class LogInfoBolt(Bolt):
    """`org.apache.storm.flux.wrappers.bolts.LogInfoBolt`: writes every tuple to the log."""

    stateful = False

    def process(self, tup: Any) -> None:
        """Logs the tuple."""
        LOG.info("%s", tup)
