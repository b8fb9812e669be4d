"""`ps.run(flow)`: what `penstock run` does, for a file that is started as a program of its own."""

from __future__ import annotations

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
    from penstock.jobs.load import is_loading

    if is_loading():
        return
    from penstock.cli.flows.run import run_flow

    try:
        run_flow(flow, **options)
    except PenstockError as error:
        raise error.with_traceback(None) from None
