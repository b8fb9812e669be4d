"""Plans of flows that come as text: `python -m penstock.jobs.manager.planning FILE FOLDER` builds one in a process of its own and prints what it would do.

A flow of Python is code, and one of SQL may name some: neither is ever loaded by the manager itself.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from penstock.errors import FlowError, OptionError, PenstockError, SetupError
from penstock.jobs.load import load_flow
from penstock.jobs.manager.access.accounts import Account, give_to
from penstock.jobs.manager.bundle import pack
from penstock.jobs.manager.job import JobVersion
from penstock.jobs.manager.manager import Manager
from penstock.jobs.manager.processes.driver import plan_of
from penstock.jobs.manager.processes.environment import job_environment
from penstock.temporary import temporary_directory

PATIENCE = 60.0
"""How many seconds building a flow may take."""
MOST_TEXT = 1 << 20
"""How many characters a flow that is shown or sent as text has."""
_TURNS = threading.BoundedSemaphore(2)
"""How many are built at once."""


def plan_text(manager: Manager, file: str, text: str, owner: str = "") -> dict[str, Any]:
    """The plan of a flow, its name, and its bundle; raises FlowError with what is wrong with it. It is built with the rights that jobs of its owner have."""
    account = manager.accounts.of_owner(owner)
    with temporary_directory("plan") as folder:
        path = folder / file
        path.write_text(text, encoding="utf-8")
        if account is not None:
            give_to(account, path.parent)
        plan = _built(path, path.parent, account)
        bundle = manager.bundles.put(pack([(file, path)]))
    return {"plan": plan, "flow": plan["flow"], "bundle": bundle, "target": file}


def source_of(manager: Manager, version: JobVersion) -> dict[str, Any]:
    """The text of the file that a job runs, and how many other files its bundle has."""
    file, folder = _file_of(manager, version)
    text = file.read_text(encoding="utf-8", errors="replace")
    if len(text) > MOST_TEXT:
        raise OptionError(
            f"{version.target} has more than {MOST_TEXT:,} characters; send it with penstock jobs upgrade"
        )
    many = sum(1 for each in folder.rglob("*") if each.is_file())
    return {"file": file.name, "target": version.target, "text": text, "others": many - 1}


def plan_version(manager: Manager, version: JobVersion, text: str, owner: str = "") -> dict[str, Any]:
    """The plan of a job whose file has another text, and the bundle of it; the other files of its bundle go along."""
    account = manager.accounts.of_owner(owner)
    file, kept = _file_of(manager, version)
    with temporary_directory("plan") as folder:
        shutil.copytree(kept, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        path = folder / file.relative_to(kept)
        path.write_text(text, encoding="utf-8")
        files = [(each.relative_to(folder).as_posix(), each) for each in folder.rglob("*") if each.is_file()]
        bundle = pack(files)
        if account is not None:
            give_to(account, folder)
        plan = _built(path, folder, account, version.target.partition(":")[2])
    return {
        "plan": plan,
        "flow": plan["flow"],
        "bundle": manager.bundles.put(bundle),
        "target": version.target,
    }


def _file_of(manager: Manager, version: JobVersion) -> tuple[Path, Path]:
    folder = manager.bundles.unpacked(version.bundle)
    file = folder / version.target.partition(":")[0]
    if not file.is_file() or not file.resolve().is_relative_to(folder.resolve()):
        raise OptionError(
            f"{version.target} is no file of the job's bundle; send a new version with penstock jobs upgrade"
        )
    return file, folder


def _built(path: Path, folder: Path, account: Account | None, name: str = "") -> dict[str, Any]:
    if not _TURNS.acquire(timeout=PATIENCE):
        raise SetupError("too many flows are being built; try again in a moment")
    try:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "penstock.jobs.manager.planning",
                f"{path}:{name}" if name else str(path),
                str(folder),
            ],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
            **({"env": job_environment()} if account is None else account.process(folder, os.environ)),
        )
    except OSError as error:
        raise SetupError(f"the flow cannot be built, Python does not start: {error}") from None
    except subprocess.TimeoutExpired:
        raise FlowError(f"the flow was not built within {PATIENCE:g} s") from None
    finally:
        _TURNS.release()
    return _answer(done, folder)


def _answer(done: subprocess.CompletedProcess[bytes], folder: Path) -> dict[str, Any]:
    line = done.stdout.decode(errors="replace").strip().rpartition("\n")[2]
    try:
        found: dict[str, Any] = json.loads(line)
    except ValueError:
        raise FlowError(f"the flow could not be built: {done.stderr.decode(errors='replace')[-2_000:]}") from None
    if "error" in found:
        raise FlowError(str(found["error"]).replace(f"{folder}/", ""))
    return found


def main() -> None:
    """What the manager starts."""
    sys.path.insert(0, sys.argv[2])
    try:
        made = plan_of(load_flow(sys.argv[1]).graph)
    except PenstockError as error:
        made = {"error": str(error)}
    sys.stdout.write(f"\n{json.dumps(made, default=str)}\n")


if __name__ == "__main__":
    main()
