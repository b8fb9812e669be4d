"""`ps.run(flow)`: what `penstock run` does, for a file that is started as a program of its own."""

from __future__ import annotations

from typing import Any

from penstock.errors import PenstockError


def run(flow: object, **options: object) -> None:
    """Runs a flow on Spark and shows its progress; returns when it ends. For the end of a file that is run as a program.

    Under spark-submit its master and settings hold. Ctrl-C ends the run after the current batch. While a command such as `penstock run` or
    `penstock describe` loads the file, this does nothing: the command decides.

    Args:
        flow: a Flow, a Topology, or whatever else has a `graph`.
        options: those of `ps.RunSpec` (which `penstock run` has too): `batch=True`, `once=True`, `duration="20s"`, `checkpoint`, `conf={...}`
            and so on; or `spec`, a RunSpec, instead of them. Besides: `until`, a function that gets the report of each batch and says whether
            to stop, and `progress` ("auto", "plain", "none").

    Raises:
        OptionError: an option is not one.
        FlowError: the flow cannot run.
        RunError: the run had to stop.

    >>> import penstock as ps
    >>> flow = ps.Flow("demo")
    >>> flow.source("words", ps.items(["a"], "word string")).sink("out", ps.console())
    >>> ps.run(flow, once=True, checkpoint="kept", progress="plain")  # doctest: +SKIP
    """
    from penstock.jobs.load import is_loading  # so that `import penstock` stays light

    if is_loading():
        return
    from penstock.cli.flows.run import run_flow  # it loads the command line

    try:
        run_flow(flow, **options)
    except PenstockError as error:
        raise error.with_traceback(None) from None


def ask(flow: str, query: str, *, checkpoint: str | None = None, version: int | None = None) -> list[Any]:
    """Answers a query from what the steps of a flow keep, while it runs or after: the last committed version, the same for all steps.

    The flow is not stopped or disturbed, and no Spark is needed. Where a query gives the whole key of a step (`where word = 'x'`), only that key is read.

    Args:
        flow: `FILE.py[:flow]`, `FILE.sql`, the name of a flow that runs from this directory, a checkpoint directory or a URL.
        query: one SELECT; its tables are the steps that keep something, by their names.
        checkpoint: the checkpoint of the flow, where it is not `.penstock/NAME`.
        version: which version of the state; else the newest.

    Returns:
        The rows.

    Raises:
        SqlError: the query cannot be read or planned.
        StateError: no step of that name keeps anything, or it keeps more than may be read at once.
        CheckpointError: there is no checkpoint.

    >>> import penstock as ps
    >>> ps.ask("count.py", "SELECT n FROM counts WHERE word = 'x'")  # doctest: +SKIP
    [Row(n=3)]
    """
    from penstock.jobs.sql.asking import asked_flow  # it loads SQL

    return asked_flow(flow, checkpoint).ask(query, version).answer.rows


def load_ipython_extension(notebook: object) -> None:
    """What `%load_ext penstock` calls: makes `%%penstock` known to a notebook."""
    from penstock.jobs.sql.magic import load  # it loads SQL

    load(notebook)  # type: ignore[arg-type]  # IPython, which is not imported here
