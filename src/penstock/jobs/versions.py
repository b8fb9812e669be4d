"""Versions and requirements of installed packages, as far as the doctor needs them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping


def clashes(requires: Iterable[str], installed: Mapping[str, str]) -> list[str]:
    """Which of a package's requirements the installed versions break; extras and other Pythons' are left out.

    >>> clashes(["pyspark<=4.2.0,>=4.0", "numpy; extra == 'fast'"], {"pyspark": "4.3.0"})
    ['pyspark<=4.2.0,>=4.0 (4.3.0 is installed)']
    """
    broken = []
    for text in requires:
        wanted, _, marker = text.partition(";")
        name = re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", wanted.strip())[0]).lower()
        version = installed.get(name)
        if version and "extra" not in marker and "python_version" not in marker and not fits(version, wanted):
            broken.append(f"{wanted.strip()} ({version} is installed)")
    return broken


def fits(version: str, wanted: str) -> bool:
    """Whether a version lies within the bounds of a requirement; only its numbers are compared.

    >>> fits("4.3.0", ">=4.2,<4.4"), fits("3.0.0", ">=2.2,<3"), fits("0.10.9.9", "py4j==0.10.9.7"), fits("2.1", "==2.*")
    (True, False, False, True)
    """
    return all(_holds(version, sign, bound) for sign, bound in re.findall(r"([=!<>~]=|[<>])\s*([\w.*]+)", wanted))


def _holds(version: str, sign: str, bound: str) -> bool:
    have, want = _numbers(version), _numbers(bound)
    if bound.endswith(".*"):
        same = have[: len(want)] == want
        return same if sign == "==" else not same
    if sign == "~=":
        return have >= want and have[: len(want) - 1] == want[:-1]
    width = max(len(have), len(want))
    have, want = have + (0,) * (width - len(have)), want + (0,) * (width - len(want))
    return {
        "==": have == want,
        "!=": have != want,
        "<": have < want,
        "<=": have <= want,
        ">": have > want,
        ">=": have >= want,
    }[sign]


def _numbers(version: str) -> tuple[int, ...]:
    release = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in release[0].split(".")) if release else ()


def dotted(version: tuple[int, ...]) -> str:
    """A version as people write it."""
    return ".".join(map(str, version))
