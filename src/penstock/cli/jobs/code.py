"""The code of a flow as a bundle, and the options of its run, as they are sent to the server of jobs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from penstock.compiler.compile import check_runnable
from penstock.connectors.preflight import check_sent, packages_of
from penstock.errors import OptionError
from penstock.graph.run import RunSpec, run_options
from penstock.jobs.load import LoadedFlow
from penstock.jobs.manager.bundle import pack
from penstock.jobs.pack.imports import needed_packages
from penstock.jobs.ship import user_modules


def given_options(spec: RunSpec) -> dict[str, object]:
    """The options that are not as they are by themselves."""
    written = spec.to_dict()
    return {n: written[n] for n, o in run_options().items() if getattr(spec, n) != o.default}


@dataclass(frozen=True)
class SentFlow:
    """A flow as it is sent: its code and further files, by their paths in the bundle."""

    flow: LoadedFlow
    files: dict[str, Path]

    @classmethod
    def of(cls, flow: LoadedFlow, globs: list[str], *, is_new: bool = True) -> SentFlow:
        """A flow with the files that the globs match; says what its job, a new one or a later version, will hardly find.

        Raises:
            FlowError: The flow cannot run.
            SetupError: Its job cannot find what a step reads.
            OptionError: A glob matches no file.
        """
        check_runnable(flow.graph)
        made = cls(flow, _files(flow, globs))
        for each in check_sent(flow.graph, frozenset(made.files), flow.folder, is_new=is_new):
            typer.echo(f"note: {each}", err=True)
        return made

    @property
    def archive(self) -> bytes:
        """The bundle."""
        return pack(self.files.items())

    @property
    def packages(self) -> dict[str, str]:
        """What the server's Python needs, each with the extra of Penstock that installs it."""
        code = [file for name, file in self.files.items() if name.endswith(".py")]
        return dict.fromkeys(needed_packages(code), "") | packages_of(self.flow.graph)

    def target(self, given: str) -> str:
        """The flow by its path in the bundle; a module keeps its name."""
        _, colon, name = given.partition(":")
        if self.flow.path is None or "." in self.flow.module:
            return f"{self.flow.module}{colon}{name}"
        return f"{self.flow.path.name}{colon}{name}"


def _files(flow: LoadedFlow, globs: list[str]) -> dict[str, Path]:
    """The code of a flow, and the further files, by their paths in the bundle."""
    found = {str(inside): file for inside, file in user_modules([flow.folder, Path.cwd()]).contents()}
    if flow.path is not None and not flow.module.count("."):
        found[flow.path.name] = flow.path
    return found | {name: path for glob in globs for path in _matches(glob) for name in _names(path, flow.folder)}


def _matches(glob: str) -> list[Path]:
    if Path(glob).is_absolute() or ".." in Path(glob).parts:
        raise OptionError(f"--include: expected a path below {Path.cwd()}, got {glob!r}")
    matched = [path for path in Path().glob(glob) if path.is_file()]
    if not matched:
        raise OptionError(f"--include {glob!r} matches no file of {Path.cwd()}")
    return matched


def _names(path: Path, folder: Path) -> list[str]:
    """A file is found by its path from here and, beside the flow, by its path from there."""
    beside = path.absolute().relative_to(folder) if path.absolute().is_relative_to(folder) else path
    return sorted({str(path), str(beside)})
