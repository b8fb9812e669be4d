"""Runs statements of SQL on Flink as they come. Run with a Python that has `apache-flink`, which needs other versions of packages than Penstock.

    python statements.py OPTION=VALUE ...

Standard input has a JSON object in each line, with a list of `statements`; the last of them may be an INSERT. For each line one is written: `seconds`, the run time of
the job as Flink counts it, which leaves out that a cluster is started for it; `wall`, with that; or `error`.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from pyflink.table import EnvironmentSettings, TableEnvironment  # type: ignore[import-not-found]  # another environment


def main(options: list[str]) -> None:
    """Reads and runs until the end of the input."""
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for option in options:
        tables.get_config().set(*option.split("=", 1))
    for line in sys.stdin:
        try:
            answer = run(tables, json.loads(line)["statements"])
        except Exception as error:
            answer = {"error": str(error)[:2000]}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def run(tables: Any, statements: list[str]) -> dict[str, Any]:
    """How long the last statement took."""
    *before, last = statements
    for each in before:
        tables.execute_sql(each)
    began = time.perf_counter()
    result = tables.execute_sql(last)
    client = result.get_job_client()
    if client is None:
        return {}
    result.wait()
    wall = time.perf_counter() - began
    return {"seconds": client.get_job_execution_result().result().get_net_runtime() / 1000, "wall": wall}


if __name__ == "__main__":
    main(sys.argv[1:])
