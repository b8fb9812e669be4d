"""What goes into the archive of an environment, and what its user should know about it."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import OptionError, SetupError, nearest
from penstock.jobs.load import LoadedFlow
from penstock.jobs.pack.archive import Member
from penstock.jobs.pack.interpreter import interpreter, libraries_outside
from penstock.jobs.pack.launcher import launcher, relocatable
from penstock.jobs.pack.manifest import MANIFEST, Manifest, this_implementation
from penstock.jobs.pack.packages import Package, Site, installed_packages, normalized, stray_files
from penstock.jobs.ship import Parcel, penstock_itself, user_modules

HUGE = 100_000_000
"""A package of more bytes than this is pointed out."""
MODULES = "modules"
"""The directory of the flow's own modules."""
PATHS = "penstock-modules.pth"
"""Puts that directory on the path of Python."""


@dataclass(frozen=True)
class Contents:
    """An environment that can be packed."""

    manifest: Manifest
    members: tuple[Member, ...]
    sizes: dict[str, int]
    """The bytes of each package."""
    warnings: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many bytes it takes unpacked."""
        return sum(member.size for member in self.members)

    @property
    def largest(self) -> list[tuple[str, int]]:
        """The three largest packages."""
        return sorted(self.sizes.items(), key=lambda each: -each[1])[:3]


def collect(
    flow: LoadedFlow | None = None, *, without: Iterable[str] = (), with_python: bool = False, site: Site | None = None
) -> Contents:
    """Looks at the installed packages and says what their archive holds. Nothing is written.

    Args:
        flow: The flow whose own modules go along.
        without: Names of packages that are left out.
        with_python: Whether the interpreter goes along.
        site: Where packages are installed; else where the running Python has them.

    Returns:
        The contents, in the order in which they are written.

    Raises:
        OptionError: `without` names a package that is not installed.
        SetupError: The environment is not complete: a file is missing, or a package is an editable install that the flow does not import.
    """
    site = site or Site.of_this_python()
    installed = installed_packages(site)
    chosen = _chosen(installed, without)
    _check_files(chosen)
    own = _own_modules(flow, chosen)
    packed = _without_unused(chosen, own, flow)
    strays = stray_files(site, installed)
    base = interpreter() if with_python else []
    files = [member for package in packed for member in _members(package, site.prefix)]
    files += [Member(_in_site(name), file) for name, file in strays.items()]
    members = [*_scripts(), *files, *_modules(own), *base]
    manifest = _manifest(packed, members, own, with_python=with_python)
    first = Member(MANIFEST, manifest.to_json().encode())
    sizes = {package.name: package.size for package in packed}
    warnings = (*_warnings(packed, chosen, sizes), *_path_warnings(strays), *_library_warnings(base))
    return Contents(manifest, (first, *_in_order(members)), sizes, warnings)


def _in_order(members: Iterable[Member]) -> list[Member]:
    """By name, each name once."""
    return sorted({member.name: member for member in members}.values(), key=lambda member: member.name)


def _in_site(name: str) -> str:
    """The name in the archive of a file with this path from the directory of packages."""
    minor = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return name[3:] if name.startswith("../") else f"lib/python{minor}/site-packages/{name}"


def _chosen(installed: list[Package], without: Iterable[str]) -> list[Package]:
    known, left_out = {package.name for package in installed}, {normalized(name) for name in without}
    for name in sorted(left_out - known):
        raise OptionError(f"--without: no package {name!r} is installed; {nearest(name, sorted(known))}")
    return [package for package in installed if package.name not in left_out]


def _check_files(packages: Iterable[Package]) -> None:
    broken = [f"{p.name} {p.version} lacks {p.missing[0]}{_others(p.missing)}" for p in packages if p.missing]
    if broken:
        names = " ".join(p.name for p in packages if p.missing)
        raise SetupError(
            f"files of installed packages are missing: {'; '.join(broken)}. "
            f"Reinstall them (pip install --force-reinstall --no-deps {names}), or leave them out (--without NAME)"
        )


def _others(missing: tuple[str, ...]) -> str:
    return f" and {len(missing) - 1} more" if len(missing) > 1 else ""


def _editable(packages: Iterable[Package]) -> dict[str, Path]:
    """The directories of editable installs by name; Penstock's own travels by itself."""
    return {p.name: p.source for p in packages if p.source is not None and p.name != "penstock"}


def _own_modules(flow: LoadedFlow | None, packages: list[Package]) -> Parcel:
    editable = _editable(packages)
    if flow is None:
        if editable:
            listed = ", ".join(f"{name} ({source})" for name, source in editable.items())
            raise SetupError(
                f"editable installs have their code elsewhere: {listed}. Name the flow, and what it imports of them is packed; "
                f"or install them (pip install DIRECTORY), or leave them out (--without NAME)"
            )
        return Parcel({})
    return user_modules([flow.folder, Path.cwd(), *editable.values()])


def _without_unused(packages: list[Package], own: Parcel, flow: LoadedFlow | None) -> list[Package]:
    """The packages, but for editable installs of which the flow imports nothing."""
    paths = [path.resolve() for path in own.modules.values()]
    unused = {
        name
        for name, source in _editable(packages).items()
        if flow is not None and not any(path.is_relative_to(source.resolve()) for path in paths)
    }
    return [package for package in packages if package.name not in unused]


def _members(package: Package, prefix: Path) -> Iterator[Member]:
    if package.source is not None:
        yield from _editable_members(package)
        return
    for name, file in package.files.items():
        inside = _in_site(name)
        if name.startswith("../bin/"):
            yield Member(inside, relocatable(file.read_bytes(), str(prefix)), is_executable=True)
        else:
            yield Member(inside, file, is_executable=bool(file.stat().st_mode & 0o100))


def _editable_members(package: Package) -> Iterator[Member]:
    """What tells the package's name and version; the code is packed as modules, Penstock's in its usual directory."""
    for name, file in package.files.items():
        if ".dist-info/" in name and file.name not in ("RECORD", "direct_url.json"):
            yield Member(_in_site(name), file)
    if package.name == "penstock":
        for inside, file in penstock_itself().contents():
            yield Member(_in_site(str(inside)), file)


def _modules(own: Parcel) -> list[Member]:
    if not own.modules:
        return []
    path = Member(_in_site(PATHS), b"../../../" + MODULES.encode() + b"\n")
    return [path, *(Member(f"{MODULES}/{inside}", file) for inside, file in own.contents(largest=None))]


def _scripts() -> list[Member]:
    base = str(Path(getattr(sys, "_base_executable", sys.executable)).resolve())
    python = Member("bin/python", launcher(sys.version_info[:2], base), is_executable=True)
    return [python, Member("bin/python3", link="python")]


def _manifest(packages: list[Package], members: list[Member], own: Parcel, *, with_python: bool) -> Manifest:
    compiled = with_python or any(re.search(r"\.so(\.\d+)*$", member.name) for member in members)
    return Manifest(
        python=platform.python_version(),
        implementation=this_implementation(),
        platform=f"linux-{platform.machine()}" if compiled else "",
        glibc=_glibc(packages, with_python=with_python) if compiled else "",
        has_python=with_python,
        packages={package.name: package.version for package in packages},
        modules=tuple(sorted(own.modules)),
    )


def _glibc(packages: Iterable[Package], *, with_python: bool) -> str:
    """The least C library for all: what wheels say they need, and this machine's own for what was built here."""
    found = [_needed(package.tags) for package in packages]
    found += [_this_glibc()] if with_python else []
    most = max(found, default=(0, 0))
    return f"{most[0]}.{most[1]}" if most != (0, 0) else ""


def _needed(tags: tuple[str, ...]) -> tuple[int, int]:
    """The least C library of a wheel, which runs where any of its tags fits."""
    numbered = [re.search(r"manylinux_(\d+)_(\d+)_", tag) for tag in tags]
    named = [(int(found[1]), int(found[2])) for found in numbered if found]
    named += [
        (2, {"1": 5, "2010": 12, "2014": 17}[old])
        for tag in tags
        for old in re.findall(r"manylinux(1|2010|2014)_", tag)
    ]
    if named:
        return min(named)
    return _this_glibc() if any("-linux_" in tag for tag in tags) else (0, 0)


def _this_glibc() -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", platform.libc_ver()[1])
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _warnings(packed: list[Package], chosen: list[Package], sizes: dict[str, int]) -> Iterator[str]:
    for package in chosen:
        if package not in packed:
            yield f"{package.name} is an editable install of which the flow imports nothing; it is not packed"
    for name, size in sizes.items():
        if size > HUGE:
            yield f"{name} takes {size / 1e6:,.0f} MB; where workers have it, leave it out: --without {name}"


def _path_warnings(strays: dict[str, Path]) -> Iterator[str]:
    """What `.pth` files of no package add to the path does not travel."""
    for name, file in sorted(strays.items()):
        if name.endswith(".pth"):
            lines = file.read_text(errors="replace").splitlines()
            yield from (
                f"{name} adds {line} to the path of Python, which is not packed"
                for line in lines
                if line.startswith("/")
            )


def _library_warnings(base: list[Member]) -> Iterator[str]:
    needed = libraries_outside(base)
    if needed:
        yield f"this Python is linked to libraries of the machine, which workers need too: {', '.join(needed)}"
