"""What the JVM and Spark's Python daemon write to their standard error that tells nobody anything."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

NOISE = re.compile(
    r"(NOTE: )?Picked up |Using Spark's default log4j|Warning: Java versions > Java 11|WARNING: (Using incubator|sun\.misc|java\.lang\.|A restricted method"
    r"|A terminally deprecated|Please consider reporting|Use --enable-native|Restricted methods|Use --sun-misc|.* will be removed)"
)
_PROCESS = re.compile(r"/pyspark/(daemon|worker|worker_util|sql/streaming/python_streaming_source_runner)\.py$")
_LIBRARY = ("/contextlib.py", "/socket.py", "/penstock/spark/tasks/daemon.py")
_TRACEBACK = "Traceback (most recent call last):"
_ENDINGS = re.compile(
    r"(EOFError|BrokenPipeError|ConnectionResetError|ConnectionAbortedError|KeyboardInterrupt|SystemExit)\b"
)
_CHAIN = re.compile(r"\s*$|During handling of the above exception|The above exception was the direct cause")
"""What stands between the tracebacks of one error and of another that it led to."""
_FRAME = re.compile(r'  File "([^"]+)"')


def quiet(lines: Iterable[str]) -> Iterator[str]:
    r"""The lines without noise, and without the tracebacks that Spark's Python processes leave when the JVM goes away under them.

    A traceback with a frame of anybody else, or with another error, passes whole. Several that processes write at the same time are looked at together.

    >>> said = [_TRACEBACK + "\n", '  File "/x/pyspark/daemon.py", line 1, in manager\n', "    x()\n", "EOFError\n", "hello\n"]
    >>> list(quiet(said))
    ['hello\n']
    """
    held: list[str] = []
    unfinished = 0
    dropped = False
    for line in lines:
        if line.startswith(_TRACEBACK):
            held.append(line)
            unfinished += 1
        elif held:
            held.append(line)
            unfinished -= _ends(line)
            if not unfinished:
                dropped = _is_daemons(held)
                yield from [] if dropped else held
                held = []
        elif not NOISE.match(line) and not (dropped and _CHAIN.match(line)):
            dropped = False
            yield line
    yield from held


def _ends(line: str) -> bool:
    """Whether a line is the last of a traceback: the error itself, which is not indented."""
    return bool(line.strip()) and not line.startswith((" ", "\t"))


def _is_daemons(block: list[str]) -> bool:
    files = [found[1] for line in block if (found := _FRAME.match(line))]
    ours = all("/pyspark/" in file or file.startswith("<frozen") or file.endswith(_LIBRARY) for file in files)
    errors = [line for line in block if _ends(line) and not line.startswith(_TRACEBACK)]
    return bool(files) and ours and any(map(_PROCESS.search, files)) and all(map(_ENDINGS.match, errors))
