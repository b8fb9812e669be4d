"""What stands in `${...}`: properties, and the environment as `${ENV-NAME}`.

>>> substituted("a: ${n}, b: ${ENV-HOME_X}, c: ${other}", {"n": "4"}, {"HOME_X": "/home"})
'a: 4, b: /home, c: ${other}'
>>> substituted("a: ${hosts[1]}", {"hosts": "[x, y]"}, {})
'a: y'
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from penstock.errors import FlowError

_NAMED = re.compile(r"\$\{([^${}\n]+)\}")
_ITEM = re.compile(r"([^\[\]]+)\[(\d{1,6})\]")


def substituted(text: str, properties: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """A text with values for names; a name that is not there stays as it is, as in Storm.

    Raises:
        FlowError: a value has several lines, which would change what the file says.
    """

    def value(found: re.Match[str]) -> str:
        name = found[1]
        given = environment.get(name[4:]) if name.startswith("ENV-") else _property(name, properties)
        if given is not None and "\n" in given:
            raise FlowError(f"expected one line for ${{{name}}}, got {given.count(chr(10)) + 1}")
        return found[0] if given is None else given

    return _NAMED.sub(value, text)


def _property(name: str, properties: Mapping[str, str]) -> str | None:
    """A property, or an item of one that is a list: `name[0]`."""
    indexed = _ITEM.fullmatch(name)
    if name in properties or indexed is None:
        return properties.get(name)
    found = properties.get(indexed[1], "").strip()
    items = (
        [item.strip().strip("\"'") for item in found.removeprefix("[").removesuffix("]").split(",")] if found else []
    )
    return items[int(indexed[2])] if int(indexed[2]) < len(items) else None


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


def filtered(path: str) -> dict[str, str] | None:
    """The properties of a file, as `--properties` names it."""
    return properties_of(Path(path)) if path else None
