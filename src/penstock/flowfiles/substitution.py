"""What stands in `${...}`: properties, and the environment as `${ENV-NAME}`.

>>> substituted("a: ${n}, b: ${ENV-HOME_X}, c: ${other}", {"n": "4"}, {"HOME_X": "/home"})
'a: 4, b: /home, c: ${other}'
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from penstock.errors import FlowError

_NAMED = re.compile(r"\$\{([^${}\n]+)\}")


def substituted(text: str, properties: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """A text with values for names; a name that is not there stays as it is, as in Storm.

    Raises:
        FlowError: a value has several lines, which would change what the file says.
    """

    def value(found: re.Match[str]) -> str:
        name = found[1]
        given = environment.get(name[4:]) if name.startswith("ENV-") else properties.get(name)
        if given is not None and "\n" in given:
            raise FlowError(f"expected one line for ${{{name}}}, got {given.count(chr(10)) + 1}")
        return found[0] if given is None else given

    return _NAMED.sub(value, text)


def properties_of(path: Path) -> dict[str, str]:
    """The properties of a file of lines `name=value`, as Java has them; `#` and `!` begin a comment."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FlowError(f"the properties {path} cannot be read: {error}") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        stripped = line.strip()
        if stripped and stripped[0] not in "#!":
            name, sign, value = (
                re.split(r"\s*([=:])\s*", stripped, maxsplit=1) if re.search("[=:]", stripped) else (stripped, "", "")
            )
            if not sign:
                raise FlowError(f"{path}: line {number}: expected name=value, got {stripped!r}")
            found[name] = value
    return found
