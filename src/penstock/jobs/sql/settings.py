"""What SET means for a run: the options of `RunSpec` by their own names, and Flink's names where they mean the same."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.errors import OptionError, nearest
from penstock.frontends.sql.plan.statements.settings import (
    MODE,
    OF_THE_PLAN,
    WITHOUT_EFFECT,
    known_settings,
    option_of,
)

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
        if name in OF_THE_PLAN or name in WITHOUT_EFFECT:
            continue
        option = run_option(name)
        given = _mode(value) if option == "mode" else value
        if made.get(option, given) != given:
            raise OptionError(f"SET '{name}' = '{value}': another SET gives {option} = {made[option]!r}; leave out one")
        if given != "":
            made[option] = given
    return made


def run_option(name: str) -> str:
    """The option of a run that a name in SET stands for.

    Raises:
        OptionError: it stands for none.
    """
    found = option_of(name)
    if not found:
        raise OptionError(f"SET '{name}': there is no such option; {nearest(name, known_settings())}")
    return found


def _mode(value: str) -> str:
    lower = value.lower()
    if lower in ("live", "once"):
        return lower
    if lower not in _MODES:
        raise OptionError(f"SET '{MODE}' is 'streaming', 'batch' or 'automatic', got {value!r}")
    return _MODES[lower]
