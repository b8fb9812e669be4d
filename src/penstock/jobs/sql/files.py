"""A file of statements as a flow: `penstock run flow.sql`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.errors import FlowError
from penstock.frontends.sql.plan.scripts import script_of
from penstock.frontends.sql.text import statements as s
from penstock.frontends.sql.text.reader import read_statements
from penstock.frontends.streams.flow import Flow
from penstock.jobs.sql.settings import NAME, run_options_of


@dataclass(frozen=True)
class SqlFile:
    """A flow that was written as statements, and the options of a run that they set."""

    flow: Flow
    options: dict[str, object]


def read_sql_file(path: Path) -> SqlFile:
    """The flow of a file.

    Raises:
        FlowError: the file cannot be read, or is no text.
        SqlError: a statement cannot be read or planned.
        OptionError: SET names an option that there is not.
    """
    text = _text(path)
    script = script_of(text, {}, Flow(path.stem), origin=path.name)
    statements = read_statements(script.text)
    name = next((st.value for st in statements if isinstance(st, s.SetOption) and st.name == NAME and st.value), "")
    if name:
        script = script_of(text, {}, Flow(name), origin=path.name)
    script.run(statements)
    return SqlFile(script.flow, run_options_of(script.session.settings))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FlowError(f"{path} is not a text in UTF-8 (byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise FlowError(f"{path} cannot be read ({error.strerror})") from None
