"""`ps.run(flow)`: what `penstock run` does, for a file that is started as a program of its own."""

from __future__ import annotations

from typing import Any

from penstock.errors import PenstockError

loading = False
"""True while a command loads a user's file; a `ps.run` in that file does nothing then, the command does the running."""


def run(flow: Any, **options: Any) -> None:
    """Runs a flow on Spark and shows its progress; returns when it ends.

        if __name__ == "__main__":
            ps.run(flow, once=True)

    The options are those of `penstock run`: `batch`, `once`, `duration` ("20s", or seconds), `interval`, `checkpoint`, `fresh`,
    `savepoint`, `drop_state` (names), `keep_versions`, `parallelism`, `master`, `conf` (a dict), `packages`, `py_files`,
    `properties_file`, `progress` ("auto", "plain", "none"), `metrics_port`, `json_logs`, `log_level`. Under spark-submit its master and settings hold. Ctrl-C ends the run after the
    batch at hand. While a command such as `penstock run` or `penstock describe` loads the file, this does nothing.
    """
    if loading:
        return
    from penstock.cli.flows.run import run_flow

    try:
        run_flow(flow, **options)
    except PenstockError as error:
        raise error.with_traceback(None) from None
