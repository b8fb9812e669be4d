"""`ps.flow_file`: the flow of a YAML file, whichever kind the file is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import FlowError

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
    from penstock.flowfiles.flux import SIGNS, flux_root, read_flux
    from penstock.flowfiles.reading import read_flow
    from penstock.flowfiles.references import use_folder
    from penstock.flowfiles.yaml_text import read_text, read_yaml

    file = Path(path)
    is_own = re.search(r"^[\"']?flow[\"']?\s*:", read_text(file), re.MULTILINE) is not None
    root = read_yaml(read_text(file), str(file)) if is_own else flux_root(file, properties or {})
    if not is_own and not any(key in root.entries() for key in SIGNS):
        raise FlowError(
            f"{path}: expected a flow file, with the keys 'flow' and 'steps', or a Flux file, with spouts, bolts and streams"
        )
    use_folder(file.absolute().parent)
    return read_flow(root) if is_own else read_flux(root, properties)


def filtered(path: str) -> dict[str, str] | None:
    """The properties of a file, as `--properties` names it."""
    from penstock.flowfiles.substitution import properties_of

    return properties_of(Path(path)) if path else None
