"""`penstock bench`: the benchmarks, and whether their bars hold."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock.cli.options import option
from penstock.cli.output.failure import handled
from penstock.errors import nearest
from penstock.jobs.exit_codes import FAILED

if TYPE_CHECKING:
    from types import ModuleType

HERE = Path(__file__).resolve()


def bench(
    name: Annotated[str, typer.Argument(help="Which one; without a name they are listed.", show_default=False)] = "",
    as_json: Annotated[bool, option("--json", help="Print the result as a last line of JSON.")] = False,
    check: Annotated[bool, option("--check", help="End with 1 when a bar does not hold.")] = False,
    everything: Annotated[bool, option("--all", envvar="PENSTOCK_BENCH_ALL", help="Run all of them.")] = False,
    quick: Annotated[bool, option("--quick", help="Less data and fewer rounds: a rough answer.")] = False,
    debug: Annotated[bool, option("--debug", help="Show full tracebacks.")] = False,
) -> None:
    """Run a benchmark, in which Penstock and hand-written PySpark do the same thing in turns."""
    with handled(debug=debug, runs=False):
        benches = {module.NAME: module for module in find()}
        if not name and not everything:
            show_list(benches)
            return
        if name and name not in benches:
            raise typer.BadParameter(f"there is no bench {name!r}; {nearest(name, benches)}")
        chosen = list(benches) if everything else [name]
        results = [one(benches[each], quick, as_json) for each in chosen]
        if check and not all(result.ok for result in results):
            raise typer.Exit(FAILED)


def find() -> list[Any]:
    """The bench modules: of the folder `benchmarks` above here or above the package, or packaged."""
    for folder in _folders():
        if (folder / "harness.py").is_file():
            return list(_modules(folder))
    raise typer.BadParameter("the benchmarks are not here; run it from a checkout of Penstock")


def _folders() -> Iterator[Path]:
    for above in (Path.cwd(), *Path.cwd().parents, *HERE.parents):
        yield above / "benchmarks"


def _modules(folder: Path) -> Iterator[Any]:
    sys.path.insert(0, str(folder.parent))
    for file in sorted(folder.glob("*.py")):
        if file.stem not in ("__init__", "harness"):
            module = importlib.import_module(f"{folder.name}.{file.stem}")
            if hasattr(module, "NAME") and hasattr(module, "run"):
                yield module


def show_list(benches: dict[str, Any]) -> None:
    """The names, each with what it measures."""
    width = max(map(len, benches), default=0)
    for name, module in benches.items():
        typer.echo(f"{name:{width}}  {module.ABOUT}")


def one(module: ModuleType, quick: bool, as_json: bool) -> Any:
    """Runs a bench and prints what it found."""
    console = Console(stderr=as_json)
    console.print(Text.assemble((module.NAME, "bold"), f": {module.ABOUT}"))
    result = module.run(quick)
    console.print(table(result))
    if as_json:
        sys.stdout.write(json.dumps(result.as_dict()) + "\n")
        sys.stdout.flush()
    return result


def table(result: Any) -> Table:
    """The figures and the bars."""
    made = Table(box=None, show_header=False, pad_edge=False)
    for name, value in result.figures.items():
        made.add_row("", name, f"{value:,.4g}" if value < 1000 else f"{value:,.0f}", "")
    for bar in result.bars:
        bound = f"at least {bar.at_least:g}" if bar.at_least is not None else f"at most {bar.at_most:g}"
        made.add_row(Text("ok", "green") if bar.ok else Text("fail", "bold red"), bar.name, f"{bar.value:.3f}", bound)
    return made
