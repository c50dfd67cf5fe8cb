"""This machine's own Python and sampan, run inside a container that has neither.

A bundle brings a private Python for this; the tests of install must not wait for one. The same trick is used: the
interpreter is started through its own dynamic loader, with its own libraries, all bound in below ``/host``.
"""

from __future__ import annotations

import ctypes  # noqa: F401  (loads libffi, so that it is among the mapped libraries)
import sqlite3  # noqa: F401
import ssl  # noqa: F401
import sys
from pathlib import Path

import sampan

HOST = "/host"
_TESTS = Path(__file__).parents[1]


def _mapped() -> list[Path]:
    """Every shared object of this process."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return sorted({Path(line.split(maxsplit=5)[5]) for line in lines if ".so" in line and line.count(" ") > 5})


def _loader() -> Path:
    return next(path for path in _mapped() if path.name.startswith("ld-"))


def _folders() -> list[Path]:
    """What must be bound in: interpreter, its libraries, the packages of this environment, sampan's source."""
    places = [Path(sys.base_prefix), Path(sampan.__file__).parents[1], *_site_packages()]
    places += [path.parent for path in _mapped() if not _below(path, places)]
    return sorted(
        {place for place in places if not any(_below(place, [other]) for other in places if other != place)}
    )


def _site_packages() -> list[Path]:
    return [Path(entry) for entry in sys.path if entry.endswith("site-packages")]


def _below(path: Path, tops: list[Path]) -> bool:
    return any(top in (path, *path.parents) for top in tops)


def binds() -> list[str]:
    """Options for systemd-nspawn."""
    return [f"--bind-ro={folder}:{HOST}{folder}" for folder in (*_folders(), _TESTS)]


def command(module: str = "sampan") -> str:
    """Shell words that run ``python -m MODULE`` inside."""
    libraries = ":".join(dict.fromkeys(f"{HOST}{path.parent}" for path in _mapped()))
    packages = ":".join(
        f"{HOST}{path}" for path in (Path(sampan.__file__).parents[1], *_site_packages(), _TESTS.parent)
    )
    python = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    loader = f"{HOST}{_loader()} --library-path {libraries} {HOST}{python}"
    return f"env PYTHONPATH={packages} PYTHONHOME={HOST}{sys.base_prefix} {loader} -m {module}"
