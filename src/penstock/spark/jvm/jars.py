"""Gets JARs: pinned, checked, kept in the cache folder; at once when they are there.

The Ivy that pyspark ships fetches them, from wherever it is set up to look. `PENSTOCK_IVY_SETTINGS` names an Ivy
settings file for machines that reach a mirror only. On a machine without a network, put the files into the cache folder.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.connectors.kafka.jars import Jar
from penstock.errors import SetupError
from penstock.spark.jvm.cache import cache_dir
from penstock.spark.jvm.java import use_java
from penstock.storage.private import make_private

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_IVY = """\
<ivy-module version="2.0">
  <info organisation="penstock" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""
_DEPENDENCY = (
    '    <dependency org="{0.org}" name="{0.module}" rev="{0.revision}" transitive="false" conf="default->default"/>'
)


def get_jars(jars: Sequence[Jar]) -> list[Path]:
    """Where the JARs lie; those that are missing or damaged are fetched first."""
    folder = cache_dir() / "jars"
    missing = [jar for jar in jars if not is_good(folder / jar.file, jar)]
    if missing:
        _fetch(missing, folder)
    return [folder / jar.file for jar in jars]


def use_jars(spark: SparkSession, jars: Sequence[Jar]) -> None:
    """Gives a session that runs already the JARs it lacks; a session that was started with them is left as it is."""
    added = "".join(str(row[0]) for row in spark.sql("LIST JARS").collect()) if jars else ""
    if not jars or has_jars({**dict(spark.sparkContext.getConf().getAll()), "added": added}, jars):
        return
    for path in get_jars(jars):
        spark.sql(f"ADD JAR '{path}'")


def has_jars(settings: Mapping[str, str], jars: Sequence[Jar]) -> bool:
    """Whether these settings bring Spark's own part of the JARs along, in the pinned version or one of the user's choice."""
    named = ",".join(settings.get(key, "") for key in ("spark.jars", "spark.jars.packages", "added"))
    return all(jar.module in named for jar in jars if jar.module.startswith("spark-sql"))


def is_good(path: Path, jar: Jar) -> bool:
    """Whether a file is there and is the one that was pinned."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256
    except OSError:
        return False


def _fetch(jars: Sequence[Jar], folder: Path) -> None:
    """Gets JARs without their dependencies, checks each, and moves it there in one step."""
    try:
        make_private(folder)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as aside:
            said = _run_ivy(jars, Path(aside))
            for jar in jars:
                _move(Path(aside) / "got" / jar.file, folder / jar.file, jar, said)
    except OSError as error:
        raise SetupError(
            f"JARs cannot be kept in {folder}: {error}. Set PENSTOCK_CACHE to a folder you may write to"
        ) from error


def _run_ivy(jars: Sequence[Jar], aside: Path) -> str:
    """Runs Ivy's command line; returns what it said."""
    wanted = aside / "ivy.xml"
    wanted.write_text(_IVY.format(dependencies="\n".join(map(_DEPENDENCY.format, jars))))
    settings = os.environ.get("PENSTOCK_IVY_SETTINGS")
    command = [
        str(use_java().home / "bin" / "java"),
        "-jar",
        str(_ivy()),
        *(["-settings", settings] if settings else []),
    ]
    command += ["-cache", str(aside / "cache"), "-ivy", str(wanted), "-confs", "default", "-types", "jar", "bundle"]
    command += ["-retrieve", str(aside / "got" / "[artifact]-[revision](-[classifier]).[ext]")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=aside)
    return f"{done.stdout}\n{done.stderr}"


def _ivy() -> Path:
    """The Ivy inside pyspark, found without importing it."""
    spec = importlib.util.find_spec("pyspark")
    home = Path(spec.origin).parent if spec is not None and spec.origin is not None else Path()
    found = sorted((home / "jars").glob("ivy-*.jar"))
    if not found:
        raise SetupError(
            f"{home}/jars has no ivy-*.jar; install pyspark from its package, or put the JARs into the cache"
        )
    return found[-1]


def _move(got: Path, target: Path, jar: Jar, said: str) -> None:
    if not got.is_file():
        raise SetupError(
            f"{jar.org}:{jar.module}:{jar.revision} could not be fetched ({_reason(said, jar)}). It needs the network once; "
            f"PENSTOCK_IVY_SETTINGS names an Ivy settings file for a mirror; or put {jar.file} into {target.parent}"
        )
    if not is_good(got, jar):
        raise SetupError(
            f"{jar.org}:{jar.module}:{jar.revision} has another SHA-256 than the pinned {jar.sha256}: it is not used. "
            f"Look at what stands between this machine and its package mirror"
        )
    got.replace(target)


def _reason(said: str, jar: Jar) -> str:
    """The line of Ivy's report that names the artefact, without the hosts it asked."""
    lines = [line.strip(" \t:") for line in said.splitlines() if "://" not in line]
    about = [
        line for line in lines if f"{jar.module};{jar.revision}" in line and ("not found" in line or "FAILED" in line)
    ]
    return about[-1] if about else "Ivy gave no reason"
