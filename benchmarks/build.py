"""Building and describing a large flow, and importing Penstock: fast, and without a JVM."""

from __future__ import annotations

import json
import subprocess
import sys

from benchmarks.harness import Bar, Result

NAME = "build"
ABOUT = "building and describing a flow of 200 steps; importing penstock"

_IMPORT = """
import sys, time
began = time.perf_counter()
import penstock
print(time.perf_counter() - began, int("pyspark" in sys.modules))
"""

_BUILD = """
import json, sys, time
import penstock as ps
began = time.perf_counter()
flow = ps.Flow("large")
stream = flow.source("s", ps.items([], "n bigint, word string, amount double"))
for at in range(33):
    stream = stream.with_columns(f"add{at}", **{f"c{at}": f"n + {at}"})
    stream = stream.where(f"keep{at}", f"c{at} >= 0 and amount < 1000")
    stream = stream.map(f"same{at}", lambda row: row)
    stream = stream.select(f"pick{at}", "n", "word", amount=f"amount + {at}")
    parts = stream.branch(f"split{at}", low="amount < 10")
    parts.low.sink(f"low{at}", ps.console())
    stream = parts.otherwise
stream.key_by("word").count("count").sink("out", ps.console())
graph = flow.graph
built = time.perf_counter() - began
from penstock.compiler.describe import describe
from penstock.graph.picture.text import as_text
text = as_text(describe(graph))
total = time.perf_counter() - began
print(json.dumps({"steps": len(graph.nodes), "build": built, "total": total, "jvm": int("pyspark" in sys.modules)}))
"""


def run(quick: bool) -> Result:
    rounds = 3 if quick else 7
    imports = [_python(_IMPORT).split() for _ in range(rounds)]
    built = [json.loads(_python(_BUILD)) for _ in range(rounds)]
    seconds = min(float(words[0]) for words in imports)
    fastest = min(built, key=lambda each: each["total"])
    loaded = max([int(words[1]) for words in imports] + [each["jvm"] for each in built])
    bars = (
        Bar("seconds to build and describe 200 steps", fastest["total"], at_most=1.0),
        Bar("seconds to import penstock", seconds, at_most=0.3),
        Bar("pyspark loaded", loaded, at_most=0),
        Bar("steps in the flow", fastest["steps"], at_least=200),
    )
    return Result(NAME, {"import_seconds": seconds, **{k: v for k, v in fastest.items() if k != "jvm"}}, bars)


def _python(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
