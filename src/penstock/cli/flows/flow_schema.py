"""`penstock flow-schema`: the JSON Schema of flow files."""

from __future__ import annotations

import json

import typer

from penstock.flowfiles import json_schema


def flow_schema() -> None:
    """Print the JSON Schema of flow files, with which editors complete and check them."""
    typer.echo(json.dumps(json_schema.flow_schema(), indent=1))
