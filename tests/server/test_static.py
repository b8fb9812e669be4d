"""What is nowhere in the tree: a shell, YAML that makes objects, code made of texts; and no pickle where something is read that others wrote.

`ruff` has more rules of this kind switched on (`S` in pyproject.toml), among them that against SQL made of texts.
"""

from __future__ import annotations

import ast
import re
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


UNPICKLED = {
    "compat/components.py": "state of a component, of the flow's own checkpoint",
    "connectors/process/spout.py": "tuples and state of the spout's own checkpoint",
    "graph/logic/cells.py": "an initial value, in the plan that the driver sends",
    "graph/rules/interned.py": "a rule, in the plan that the driver sends",
    "kernels/joins/broadcast.py": "a table, from another task of this run",
    "kernels/keyed/keyed.py": "a partial result, from another task of this run",
    "kernels/topology/batches.py": "a partial result, from another task of this run",
    "kernels/topology/task_state.py": "keys of state, of the flow's own checkpoint",
    "spark/workers/probe.py": "the storage to try, from the driver",
    "spark/tasks/worker.py": "the plan of a stage, from the driver",
    "state/columns.py": "values of state, of the flow's own checkpoint",
    "state/file_list.py": "names of state files, from the driver",
    "state/memory.py": "a snapshot, of the flow's own checkpoint",
    "state/memory_timers.py": "a snapshot, of the flow's own checkpoint",
    "state/opaque.py": "values of state, of the flow's own checkpoint",
}
"""Each module that unpickles, and whose bytes those are: of the flow's own process tree, or of its own checkpoint, which has the rights of its code."""
PICKLES = ("pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib")
LOADS = ("load", "loads", "Unpickler", "open")


def unpickling(tree: ast.Module) -> bool:
    """Whether a module names something that unpickles, called or handed on."""
    return any(_unpickles(node) for node in ast.walk(tree))


def _unpickles(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        names = {alias.name for alias in node.names}
        return (node.module or "").rpartition(".")[2] in PICKLES and bool(names & {*LOADS, "*"})
    if isinstance(node, ast.Import):  # under another name it would not be found
        return any(alias.name.rpartition(".")[2] in PICKLES and alias.asname for alias in node.names)
    return isinstance(node, ast.Attribute) and node.attr in LOADS and _last(node.value) in PICKLES


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def test_only_the_named_modules_unpickle() -> None:
    found = {str(file.relative_to(SOURCE)) for file in FILES if unpickling(ast.parse(file.read_text()))}
    assert found == UNPICKLED.keys()


@pytest.mark.parametrize(
    "text",
    [
        "import pickle\npickle.loads(x)",
        "from pickle import loads",
        "from pyspark import cloudpickle\nmap(cloudpickle.loads, x)",
        "import pyspark.cloudpickle\npyspark.cloudpickle.load(x)",
        "from pickle import *",
        "import pickle as p",
        "import pickle\nclass A(pickle.Unpickler): pass",
    ],
)
def test_what_unpickles_is_seen(text: str) -> None:
    assert unpickling(ast.parse(text))
    assert not unpickling(ast.parse("import pickle, json\njson.loads(pickle.dumps(x))"))


def test_each_rule_of_security_that_is_put_aside_says_why() -> None:
    found = [
        line for file in FILES for line in file.read_text().splitlines() if re.search(r"# noqa:.*\bS\d{3}\b", line)
    ]
    assert len(found) >= 10
    assert [line for line in found if not re.search(r"\bS\d{3} - \S", line)] == []
