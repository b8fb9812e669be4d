"""Whoever keeps durable bytes goes through `penstock.storage`: no module above it opens, renames or removes files, but for those named here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "src" / "penstock"
FREE = {
    "storage/": "the seam itself",
    "log/": "the embedded log appends to segments, which no storage of objects can",
    "connectors/files/": "the files that a user reads and writes, here or in Hadoop's file systems",
    "spark/jvm/": "caches of the JVM and its classes on this machine",
    "spark/workers/stand_in.py": "the directory in which the driver's JVM works, which goes with the process",
    "jobs/": "servers to develop with, and what travels to workers",
    "cli/": "what a user asks to be written",
    "testing/": "the test kit",
    "demo/": "examples",
    "bridge/": "certificates and the like",
    "graph/multilang/process.py": "the directory in which a program notes its pid, which goes with the program",
    "live/hold.py": "the lock by which one driver at a time has a checkpoint directory open",
    "spark/checkpoint/directory.py": "directories that a start that failed has made",
    "connectors/process/followed.py": "tuples on their way between the tasks of one bounded run",
    "spark/lower/context.py": "the directory of these, which goes with the run",
    "temporary.py": "temporary directories, which go with the process",
    "spark/checkpoint/mirror.py": "the same",
}
METHODS = {
    *("rename", "unlink", "mkdir", "rmdir", "touch", "write_text", "write_bytes", "symlink_to", "hardlink_to"),
    *("rmtree", "copytree", "copyfile", "copy2", "fsync", "link", "makedirs"),
}
"""Methods of paths and functions of `os` and `shutil` that change files."""


def _changes(text: str) -> Iterator[str]:
    """What a module does to files, by the line."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in METHODS and not _is_client(node.func):
            yield f"{node.lineno}: {name}"
        if name in ("open", "fdopen") and any(_is_writing(each) for each in (*node.args, *_values(node))):
            yield f"{node.lineno}: open for writing"
        if name == "replace" and _is_os(node.func):
            yield f"{node.lineno}: os.replace"


def _values(node: ast.Call) -> list[ast.expr]:
    return [each.value for each in node.keywords if each.arg == "mode"]


def _is_writing(mode: ast.expr) -> bool:
    is_mode = isinstance(mode, ast.Constant) and isinstance(mode.value, str) and set(mode.value) <= set("rwaxbt+")
    return is_mode and bool(set("wax+") & set(str(mode.value)))  # type: ignore[attr-defined]


def _is_os(function: ast.expr) -> bool:
    owner = function.value if isinstance(function, ast.Attribute) else None
    return isinstance(owner, ast.Name) and owner.id == "os"


def _is_client(function: ast.expr) -> bool:
    """Redis has a command UNLINK."""
    owner = function.value if isinstance(function, ast.Attribute) else None
    return isinstance(owner, ast.Name) and owner.id == "client"


def modules() -> list[Path]:
    paths = sorted(ROOT.rglob("*.py"))
    return [p for p in paths if not str(p.relative_to(ROOT)).startswith(tuple(FREE))]


def test_no_module_above_the_seam_changes_files() -> None:
    found = {str(p.relative_to(ROOT)): list(_changes(p.read_text())) for p in modules()}
    assert {name: lines for name, lines in found.items() if lines} == {}
    assert len(found) > 300


@pytest.mark.parametrize(
    "text",
    [
        "path.open('wb')",
        "open(path, 'a')",
        "open(path, mode='w')",
        "os.replace(a, b)",
        "aside.rename(path)",
        "shutil.rmtree(folder)",
        "(folder / 'note').write_text('x')",
        "path.unlink(missing_ok=True)",
        "os.fdopen(handle, 'wb')",
    ],
)
def test_a_module_that_does_is_found(text: str) -> None:
    assert list(_changes(text))


@pytest.mark.parametrize("text", ["path.open('rb')", "text.replace('a', 'b')", "client.unlink(key)", "open(path)"])
def test_a_module_that_does_not_is_not(text: str) -> None:
    assert not list(_changes(text))


def test_what_is_free_is_there() -> None:
    assert [part for part in FREE if not (ROOT / part).exists()] == []
