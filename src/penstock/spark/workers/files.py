"""Where Spark keeps the files that it sends to workers, on the driver."""

from __future__ import annotations

from pathlib import Path


def files_directory() -> Path:
    """The directory on the driver with the files that are sent to workers; it goes when the JVM ends."""
    from pyspark import SparkFiles

    return Path(SparkFiles.getRootDirectory())
