"""What requests send."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

NAME = r"^[a-z0-9][a-z0-9._-]{0,62}$"
"""The name of a job, a pool or an alert, as the description has it."""
OWNER = r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,62}$"
DIGEST = r"^[0-9a-f]{64}$"
LARGEST = 2**31 - 1
TEN_YEARS = 315_360_000.0


class Body(BaseModel):
    """An object that has the fields it is described with, of the types that they are described with, and no others."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _is_text(values: dict[str, Any]) -> dict[str, Any]:
    """Refuses halves of characters, which JSON can spell and no answer could repeat."""
    try:
        _walk(values)
    except (UnicodeError, RecursionError):
        raise ValueError("expected texts of whole characters") from None
    return values


def _walk(value: object) -> None:
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, dict):
        for key, each in value.items():
            key.encode()
            _walk(each)
    elif isinstance(value, list):
        for each in value:
            _walk(each)


def described(pattern: str) -> Any:
    """A text of which the description says the pattern; what refuses others is the object that is made of it, with a sentence that helps."""
    return Field(json_schema_extra={"pattern": pattern})


Options = Annotated[dict[str, Any], AfterValidator(_is_text)]
Name = Annotated[str, described(NAME)]
Owner = Annotated[str, described(OWNER)]
Digest = Annotated[str, described(DIGEST)]
