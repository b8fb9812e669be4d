"""What a worker says of itself when the doctor asks. It travels by value, and needs nothing but Python's own library to answer."""

from __future__ import annotations

import importlib
import json
import os
import pickle
import platform
import re
import sys
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

Answer = dict[str, object]


def answer(parts: Iterable[int], modules: tuple[str, ...], storage: bytes, prefix: str) -> Iterator[str]:
    """One answer from each executor, whatever the number of its cores: from the first of its tasks.

    Args:
        parts: The records of the task; they do not matter.
        modules: What a worker must be able to import.
        storage: The checkpoint's storage, pickled; empty for none.
        prefix: Where in it the driver has put `driver`, and where the worker puts an object of its own.

    Returns:
        The answer as JSON, or nothing from the other tasks.
    """
    from pyspark import BarrierTaskContext

    for _ in parts:
        pass
    context = BarrierTaskContext.get()
    addresses = [info.address for info in context.getTaskInfos()]
    address = addresses[context.partitionId()]
    if addresses.index(address) == context.partitionId():
        yield json.dumps({"address": address, "cores": addresses.count(address), **about(modules, storage, prefix)})


def about(modules: tuple[str, ...], storage: bytes, prefix: str) -> Answer:
    """What this process is, what it can import, and how the checkpoint looks from here."""
    found: Answer = {
        "host": platform.node(),
        "python": platform.python_version(),
        "executable": sys.executable,
        "java": java_version(),
        "imports": {name: imported(name) for name in modules},
    }
    return found if not storage else {**found, "store": try_store(storage, prefix)}


def imported(name: str) -> list[str]:
    """The version of a module, and the error if it cannot be imported."""
    try:
        module = importlib.import_module(name)
    except BaseException as error:  # whatever an import raises is the answer
        return ["", f"{type(error).__name__}: {error}"]
    return [str(getattr(module, "__version__", "")), ""]


def java_version() -> str:
    """The version of the JVM that this process is below; empty where that cannot be seen."""
    pid = os.getpid()
    try:
        while pid > 1 and Path(f"/proc/{pid}/comm").read_text().strip() != "java":
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        home = Path(f"/proc/{pid}/exe").readlink().parents[1]
        found = re.search(r'^JAVA_VERSION="([^"]+)"', (home / "release").read_text(), re.MULTILINE)
    except (OSError, ValueError, IndexError):
        return ""
    return found[1] if found else ""


def try_store(storage: bytes, prefix: str) -> Answer:
    """Reads what the driver has put, puts an object and reads it back; the driver deletes it."""
    began, name = time.monotonic(), f"{prefix}/{uuid.uuid4().hex}"
    try:
        kept = pickle.loads(storage)
        if kept.read(f"{prefix}/driver") != prefix.encode():
            return {"error": "what the driver has put there reads otherwise"}
        kept.write(name, name.encode())
        if kept.read(name) != name.encode():
            return {"error": "what was put there reads otherwise"}
    except BaseException as error:  # whatever a store raises is the answer
        return {"error": f"{type(error).__name__}: {error}"}
    return {"error": "", "name": name, "seconds": time.monotonic() - began}


def clock(parts: Iterable[int]) -> Iterator[tuple[str, float]]:
    """The processing time of each task, and the executor that has it."""
    from pyspark import BarrierTaskContext

    for _ in parts:
        pass
    context = BarrierTaskContext.get()
    yield context.getTaskInfos()[context.partitionId()].address, time.time()
