"""What is nowhere in the tree: a shell, YAML that makes objects, code made of texts; and no pickle where something is read that others wrote."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock

SOURCE = Path(penstock.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
READS_OTHERS = (
    "server",
    "jobs/manager",
    "log",
    "live/dead_letters",
    "spark/checkpoint",
    "flowfiles",
    "bridge",
    "client",
)
"""What reads requests, topics, uploads, checkpoints and files of drivers, in the process of the manager."""
FORBIDDEN = {
    "os.system",
    "os.popen",
    "yaml.load",
    "yaml.unsafe_load",
    "yaml.full_load",
    "subprocess.getoutput",
    "marshal.loads",
}


def calls(file: Path) -> Iterator[ast.Call]:
    return (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call))


def test_there_are_files_to_look_at() -> None:
    assert len(FILES) > 500
    assert all((SOURCE / each).exists() for each in READS_OTHERS)


def test_no_process_is_started_by_a_shell_and_no_text_becomes_code() -> None:
    found = []
    for file in FILES:
        for call in calls(file):
            named = ast.unparse(call.func)
            has_shell = any(k.arg == "shell" and not _is_false(k.value) for k in call.keywords)
            if named in FORBIDDEN or has_shell or named in ("eval", "exec"):
                found.append(f"{file.relative_to(SOURCE)}:{call.lineno} {named}")
    assert found == []


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


@pytest.mark.parametrize("part", READS_OTHERS)
def test_nothing_that_others_wrote_is_unpickled(part: str) -> None:
    for file in sorted((SOURCE / part).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {n.partition(".")[0] for n in names} & {"pickle", "cloudpickle", "dill", "shelve", "marshal"}, (
                file
            )
