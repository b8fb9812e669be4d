"""Class-data sharing: the classes Spark loads at every start, parsed once and mapped from a file afterwards.

Measured on 2 cores with Java 17: from the start to the first output the driver and its workers use 22 instead of 33
seconds of processor time (docs/decisions/0012-start.md). The archive belongs to one Java and one set of Spark's JARs, lies in the
cache directory, and is written by the first JVM that ends when there is none. A JVM that cannot use an archive goes on without it.
"""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

from penstock.spark.jvm.cache import cache_dir
from penstock.spark.jvm.java import Java

KEEP = 8
"""How many archives stay; each takes about 170 MB."""
IN_USE = 3600.0
"""An archive that was used in so many seconds is not removed for another: environments that take turns would write theirs at every end."""
BESIDE = (".pid", ".jars")
"""What lies beside an archive: the process that writes it, and the JARs it was made from."""
AUTOMATIC = 19
"""From this Java on a JVM writes and replaces its archive itself."""
OWN = ("SharedArchiveFile", "ArchiveClassesAtExit", "-Xshare")
"""Options by which users say what they want of class-data sharing."""
SWITCH = "PENSTOCK_CLASS_SHARING"
"""An environment variable; `off` leaves class-data sharing to Java's defaults."""


def archive_options(java: Java, jars: Path, given: str = "") -> tuple[str, ...]:
    """The options that have a JVM use the archive, or write it when it ends.

    Args:
        java: The Java that runs Spark.
        jars: The directory of Spark's own JARs.
        given: The user's options for the driver's JVM; one about class-data sharing wins.

    Returns:
        Options for the command line, none where sharing is off or the cache directory cannot be written.
    """
    if os.environ.get(SWITCH, "").lower() == "off" or any(word in given for word in OWN):
        return ()
    directory = cache_dir() / "classes"
    file = directory / f"{fingerprint(java, jars)}.jsa"
    quiet = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")
    if file.is_file():
        _touch(file, jars)
        return (f"-XX:SharedArchiveFile={file}", *quiet)
    if not _claim(directory, file, jars):
        return ()
    if java.version >= AUTOMATIC:
        return ("-XX:+AutoCreateSharedArchive", f"-XX:SharedArchiveFile={file}", *quiet)
    return (f"-XX:ArchiveClassesAtExit={file}", *quiet)


def fingerprint(java: Java, jars: Path) -> str:
    """A name that changes with the Java and with the JARs: their names, sizes and times."""
    release = java.home / "release"
    parts = [java.text, release.read_text() if release.is_file() else "", str(jars)]
    for jar in sorted(jars.glob("*.jar")):
        seen = jar.stat()
        parts.append(f"{jar.name} {seen.st_size} {seen.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _touch(file: Path, jars: Path) -> None:
    """Notes that an archive is in use, and by whom: those used longest ago are removed first, those of environments that are gone before them."""
    try:
        os.utime(file)
        file.with_suffix(".jars").write_text(str(jars))
    except OSError:
        return


def _claim(directory: Path, file: Path, jars: Path) -> bool:
    """Whether this JVM is the one that writes the archive; a claim whose process has ended does not count."""
    claim = file.with_suffix(".pid")
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if (claim.is_file() and _runs(claim.read_text())) or not _made_room(directory):
            return False
        claim.write_text(str(os.getpid()))
        file.with_suffix(".jars").write_text(str(jars))
    except OSError:
        return False
    return True


def _runs(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ValueError, OSError):
        return False
    return True


def _made_room(directory: Path) -> bool:
    """Whether there is room for one more archive, once those without an environment are gone, and those that were used longest ago."""
    for file in directory.glob("*.jsa"):
        if _is_orphan(file):
            _remove(file)
    used = sorted((file.stat().st_mtime, file) for file in directory.glob("*.jsa"))
    old = [file for at, file in used if at < time.time() - IN_USE]
    for file in old[: max(0, len(used) - KEEP + 1)]:
        _remove(file)
    return len(list(directory.glob("*.jsa"))) < KEEP


def _is_orphan(file: Path) -> bool:
    """Whether the JARs of an archive are known to be gone: an environment of the same name would have others."""
    made_from = file.with_suffix(".jars")
    return made_from.is_file() and not Path(made_from.read_text()).is_dir()


def _remove(file: Path) -> None:
    for each in (file, *map(file.with_suffix, BESIDE)):
        each.unlink(missing_ok=True)
