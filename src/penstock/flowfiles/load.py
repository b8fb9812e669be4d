"""`ps.flow_file`: the flow of a YAML file, whichever kind the file is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import FlowError

if TYPE_CHECKING:
    from penstock.frontends.streams.flow import Flow

SUFFIXES = (".yaml", ".yml")


def flow_file(path: str | Path) -> Flow:
    """The flow of a YAML file. Modules that it names are looked for beside the file first.

    Args:
        path: the file.

    Returns:
        The flow, which may be run and tested as any other.

    Raises:
        FlowError: the file cannot be read, or something in it is not as it must be; with file, line and column.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import penstock as ps
    >>> file = Path(tempfile.mkdtemp()) / "hello.yaml"
    >>> _ = file.write_text('''
    ... flow: hello
    ... steps:
    ...   - {name: words, source: {items: {rows: [a, bb], schema: word string}}}
    ...   - {name: out, from: words, sink: console}
    ... ''')
    >>> ps.flow_file(file)
    Flow('hello', 2 steps)
    """
    from penstock.flowfiles.reading import read_flow
    from penstock.flowfiles.references import use_folder
    from penstock.flowfiles.yaml_text import read_file

    root = read_file(Path(path))
    if "flow" not in root.entries():
        raise FlowError(f"{path}: expected a flow file, with the keys 'flow' and 'steps'")
    use_folder(Path(path).absolute().parent)
    return read_flow(root)
