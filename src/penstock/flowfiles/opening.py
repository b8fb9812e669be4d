"""Opens a YAML file: finds out whose kind it is, and has it read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from penstock.errors import FlowError
from penstock.flowfiles.flux import SIGNS, flux_root, read_flux
from penstock.flowfiles.reading import read_flow
from penstock.flowfiles.references import use_folder
from penstock.flowfiles.yaml_text import read_text, read_yaml
from penstock.frontends.streams.flow import Flow
from penstock.frontends.topology.topology import Topology


def open_file(file: Path, properties: Mapping[str, str] | None = None) -> Flow | Topology:
    """The flow of a file of Penstock's own, or of Flux.

    Raises:
        FlowError: the file cannot be read, or something in it is not as it must be; with file, line and column.
    """
    is_own = re.search(r"^[\"']?flow[\"']?\s*:", read_text(file), re.MULTILINE) is not None
    root = read_yaml(read_text(file), str(file)) if is_own else flux_root(file, properties or {})
    if not is_own and not any(key in root.entries() for key in SIGNS):
        raise FlowError(
            f"{file}: expected a flow file, with the keys 'flow' and 'steps', or a Flux file, with spouts, bolts and streams"
        )
    use_folder(file.absolute().parent)
    return read_flow(root) if is_own else read_flux(root, properties)
