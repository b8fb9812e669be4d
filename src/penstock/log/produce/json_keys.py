"""Keys of records that are a field of their JSON value."""

from __future__ import annotations

import json


def key_in(value: object, name: str) -> bytes | None:
    """The field of a JSON value that is its key, inside of objects by names with dots; None where there is none.

    >>> key_in({"user": {"id": 7}}, "user.id"), key_in({"user": "ada"}, "user.id")
    (b'7', None)
    """
    found = value
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    if found is None:
        return None
    text = found if isinstance(found, str) else json.dumps(found, separators=(",", ":"), sort_keys=True)
    return text.encode(errors="surrogatepass")
