"""From `penstock submit` to the first output of a small live flow, against `penstock run` of the same file."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.console import server
from benchmarks.harness import Bar, Result, folder, paired_ratio
from benchmarks.start import FLOW, PATIENCE, penstock, program
from penstock.client import Client

NAME = "submit"
ABOUT = "from `penstock submit` to the first output of a small live flow, against `penstock run` of the same file"


def run(quick: bool) -> Result:
    rounds = 2 if quick else 5
    with folder() as directory, server(directory / "data"):
        sides = {"run": penstock, "submit": submitted}
        taken: dict[str, list[float]] = {name: [] for name in sides}
        for at in range(rounds + 1):
            for name, side in sides.items():
                seconds = side(directory, at)
                taken[name] += [seconds] if at else []
    figures = {f"{name}_seconds": statistics.median(seconds) for name, seconds in taken.items()}
    ratio = paired_ratio(taken, over="submit", under="run")
    return Result(NAME, {"rounds": rounds, **figures}, (Bar("over penstock run", ratio, at_most=1.15),))


def submitted(directory: Path, at: int) -> float:
    """`penstock submit` on the flow; the job ends with its first output."""
    file, marker = program(FLOW, directory, f"job{at}")
    root, name = directory / "data", f"job{at}"
    command = [sys.executable, "-m", "penstock.cli.main", "submit", "--data", str(root), "--name", name, str(file)]
    began = time.perf_counter()
    subprocess.run(command, cwd=file.parent, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=True)
    while not marker.exists():
        if time.perf_counter() - began > PATIENCE:
            raise RuntimeError(f"no output within {PATIENCE:.0f} s: {Client.found(root).log(name)}")
        time.sleep(0.01)
    seconds = time.perf_counter() - began
    client = Client.found(root)
    client.act(name, "kill")
    while client.job(name)["phase"] != "stopped":
        time.sleep(0.05)
    return seconds
