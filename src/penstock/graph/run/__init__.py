"""How a flow is run: the options of a run, each declared once."""

from penstock.graph.run.option import Option
from penstock.graph.run.spec import RunSpec, run_options

__all__ = ["Option", "RunSpec", "run_options"]
