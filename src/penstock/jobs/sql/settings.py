"""What SET means for a run: the options of `RunSpec` by their own names, and Flink's names where they mean the same."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.errors import OptionError, nearest
from penstock.graph.run.spec import run_options

MODE = "execution.runtime-mode"
NAME = "pipeline.name"
TTL = "table.exec.state.ttl"
ALIASES = {
    MODE: "mode",
    "execution.checkpointing.interval": "interval",
    "execution.checkpointing.dir": "checkpoint",
    "state.checkpoints.dir": "checkpoint",
    "execution.checkpointing.num-retained": "keep_versions",
    "state.checkpoints.num-retained": "keep_versions",
    "execution.savepoint.path": "savepoint",
    "execution.state-recovery.path": "savepoint",
    "parallelism.default": "parallelism",
    "pipeline.max-parallelism": "key_groups",
}
"""Names of Flink's, and the option of a run that means the same."""
OF_THE_PLAN = (NAME, TTL, "table.local-time-zone", "sql-client.execution.result-mode")
"""Names that are no options of a run: the planner or the shell reads them."""
_MODES = {"streaming": "live", "batch": "batch", "automatic": ""}


def run_options_of(settings: Mapping[str, str]) -> dict[str, object]:
    """The options of a run among what SET has set.

    Raises:
        OptionError: a name is none that is known, with the nearest; or two names mean the same option and disagree.

    >>> run_options_of({"execution.runtime-mode": "batch", "interval": "5s"})
    {'mode': 'batch', 'interval': '5s'}
    """
    made: dict[str, object] = {}
    for name, value in settings.items():
        if name in OF_THE_PLAN:
            continue
        option = option_of(name)
        given = _mode(value) if option == "mode" else value
        if made.get(option, given) != given:
            raise OptionError(f"SET '{name}' = '{value}': another SET gives {option} = {made[option]!r}; leave out one")
        if given != "":
            made[option] = given
    return made


def option_of(name: str) -> str:
    """The option of a run that a name in SET stands for.

    Raises:
        OptionError: it stands for none.
    """
    found = ALIASES.get(name, name.removeprefix("penstock.").replace("-", "_"))
    if found not in run_options():
        known = [*run_options(), *ALIASES, *OF_THE_PLAN]
        raise OptionError(f"SET '{name}': there is no such option; {nearest(name, known)}")
    return found


def _mode(value: str) -> str:
    lower = value.lower()
    if lower in ("live", "once"):
        return lower
    if lower not in _MODES:
        raise OptionError(f"SET '{MODE}' is 'streaming', 'batch' or 'automatic', got {value!r}")
    return _MODES[lower]
