"""Hostile texts: paths out of a directory in every spelling, and names that are code somewhere."""

from __future__ import annotations

from itertools import product

CANARY = "canary-outside-7f3a"
_UP = (
    "..",
    "%2e%2e",
    "%2e.",
    ".%2e",
    "..%00",
    "%252e%252e",
    "%c0%ae%c0%ae",
    "..;",
    "...",
    "....",
    "%u002e%u002e",
    ". .",
)
_SLASH = ("/", "%2f", "%252f", "\\", "%5c", "%255c", "%c0%af", "//", "/./", "%2f%2f")
_TO = ("admin.token", "manager.db")
PATHS = [f"{up}{slash}{up}{slash}{to}" for up, slash, to in product(_UP, _SLASH, _TO)]
CODE = [
    "'; drop table jobs; --",
    '" or 1=1 --',
    "$(id)",
    "`id`",
    ";id",
    "|id",
    "&& id",
    "\nid",
    "{{7*7}}",
    "${jndi:ldap://127.0.0.1/a}",
    "__import__('os').system('id')",
    "<script>alert(1)</script>",
    "%s%n%x",
    "\u202egnp.exe",
    "a\x00b",
    "-rf",
    "--help",
    "CON",
    "~root",
    "*",
    "a" * 4_000,
    "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
]
TEXTS = [*PATHS, *CODE]
assert len(PATHS) >= 200
