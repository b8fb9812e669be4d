"""`ps.flow_file`: the flow of a YAML file, whichever kind the file is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.frontends.streams.flow import Flow
    from penstock.frontends.topology.topology import Topology

SUFFIXES = (".yaml", ".yml")


def flow_file(path: str | Path, properties: Mapping[str, str] | None = None) -> Flow | Topology:
    """The flow of a YAML file: one of Penstock's own, or one of Storm's Flux. Modules that it names are looked for beside the file first.

    Args:
        path: the file.
        properties: what stands for `${name}` in a Flux file; `${ENV-NAME}` is the environment.

    Returns:
        The flow or the topology, which may be run and tested as any other.

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
    from penstock.flowfiles.opening import open_file  # here, so that `import penstock` loads no YAML

    return open_file(Path(path), properties)
