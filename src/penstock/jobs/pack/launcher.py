"""The scripts of a packed environment: they find their files beside themselves, and Python on the machine or among those files."""

from __future__ import annotations

import shlex

_LAUNCHER = """\
#!/bin/sh
# Runs Python {minor} with the packages beside this file. Made by `penstock pack`.
here=$(cd -- "$(dirname -- "$0")/.." && pwd -P) || exit 127
if [ -d "$here/python/lib" ]; then
  LD_LIBRARY_PATH=$here/python/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}
  export LD_LIBRARY_PATH
fi
unset PYTHONHOME PYTHONNOUSERSITE
ask='import sys; print(sys._base_executable) if sys.version_info[:2] == {pair} else sys.exit(1)'
for python in "$here/python/bin/python{minor}" "${{PENSTOCK_PYTHON:-}}" {base} python{minor} python3 python; do
  [ -n "$python" ] || continue
  found=$("$python" -I -S -c "$ask" 2>/dev/null) || continue
  PYTHONUSERBASE=$here
  export PYTHONUSERBASE
  exec "$found" "$@"
done
echo "$0: found no Python {minor} on $(uname -n): install it, name it in PENSTOCK_PYTHON, or pack with --with-python" >&2
exit 127
"""

_HEADER = b"""#!/bin/sh
'''exec' "$(dirname -- "$(realpath -- "$0")")/python" "$0" "$@"
' '''
"""
"""Shell and Python at once: the shell runs the second line, Python takes it for a text."""


def launcher(version: tuple[int, ...], base: str) -> bytes:
    """The script that stands for `bin/python`.

    Packages are found as those of a user (`PYTHONUSERBASE`): before the machine's own, with their `.pth` files, and nothing has to be written.

    Args:
        version: The version of Python that the packages are for.
        base: The interpreter that packed them; it is tried before those in `PATH`.

    Returns:
        The text of the script.
    """
    minor = ".".join(map(str, version[:2]))
    return _LAUNCHER.format(minor=minor, pair=str(tuple(version[:2])), base=shlex.quote(base)).encode()


def relocatable(script: bytes, prefix: str) -> bytes:
    r"""A script of an environment, made to run the `python` beside it; one that is no script of Python stays as it is.

    Args:
        script: The content of the file.
        prefix: The directory of the environment.

    Returns:
        The content to pack.

    >>> relocatable(b"#!/env/bin/python3\nimport sys\n", "/env").endswith(b"' '''\nimport sys\n")
    True
    """
    first, _, rest = script.partition(b"\n")
    if not first.startswith(b"#!"):
        return script
    if prefix.encode() in first and b"python" in first:
        return _HEADER + rest
    if first == b"#!/bin/sh" and rest.startswith(b"'''exec' "):
        return _HEADER + rest.split(b"\n", 2)[-1]
    return script
