"""`python -m tests.fuzz.atheris_run TARGET SECONDS`: a target under atheris, which is installed beside the lock: `pip install atheris`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Runs until the time is over, or an input is found that a target fails on."""
    name, seconds = sys.argv[1], sys.argv[2]
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["penstock"]):
        targets = importlib.import_module("tests.fuzz.targets")
    corpus = Path(targets.folder()) / f"corpus-{name}"
    corpus.mkdir()
    for number, seed in enumerate(targets.seeds(name)):
        (corpus / str(number)).write_bytes(seed)
    options = [f"-max_total_time={seconds}", "-timeout=30", "-max_len=4096", f"-artifact_prefix={targets.folder()}/"]
    atheris.Setup([sys.argv[0], str(corpus), *options], lambda content: targets.run(name, content))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
