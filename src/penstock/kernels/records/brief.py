"""Values and errors as messages show them, whatever a user's class makes of `repr` and `str`."""

from __future__ import annotations


def brief(value: object, limit: int = 200) -> str:
    """A value as text, cut when it is long; of one that has no text, its class and why.

    >>> brief("ada"), brief("x" * 1000, 5)
    ("'ada'", "'xxxx... (1002 characters)")
    >>> brief(10**5000)
    '<int, whose repr raises ValueError>'
    """
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__}, whose repr raises {type(error).__name__}>"
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"


def error_text(error: BaseException) -> str:
    r"""What an error says, as text that can be written anywhere; of one that says nothing, its class.

    >>> error_text(KeyError("a")), error_text(ValueError()), error_text(ValueError("\ud800"))
    ("'a'", 'ValueError', '\\ud800')
    """
    try:
        said = str(error)
    except Exception as raised:
        said = f"{type(error).__name__}, whose str raises {type(raised).__name__}"
    return printable(said) or type(error).__name__


def printable(text: str) -> str:
    """A text whose halves of surrogate pairs are spelled out: no file and no column takes them."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()
