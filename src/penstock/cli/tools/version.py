"""`penstock version`: the versions that a report of a problem needs."""

from __future__ import annotations

import importlib.metadata
import platform

import typer

from penstock.version import __version__


def version() -> None:
    """Show the versions of Penstock, Python and Spark."""
    typer.echo(f"penstock {__version__}")
    typer.echo(f"python   {platform.python_version()}")
    for package in ("pyspark", "pyarrow"):
        typer.echo(f"{package:8} {_version_of(package)}")


def _version_of(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
