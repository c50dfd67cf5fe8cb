"""What the private Python is to a package index: its markers and the wheel tags that it takes.

The glibc that counts is the runtime's own, never the target's: wheels see no other.
"""

from __future__ import annotations

from collections.abc import Iterator

from packaging.tags import compatible_tags, cpython_tags

from sampan.spec.artefacts import RuntimeTree

_OLDEST_GLIBC = {"x86_64": 5, "aarch64": 17}  # PEP 600: the first manylinux of each architecture
_ALIASES = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}  # PEP 599, 571, 513
_ALIAS_ARCHES = {"manylinux2010": ("x86_64",), "manylinux1": ("x86_64",)}


def environment(runtime: RuntimeTree) -> dict[str, str]:
    """PEP 508's variables on the target."""
    return {
        "implementation_name": "cpython",
        "implementation_version": runtime.python,
        "os_name": "posix",
        "platform_machine": runtime.arch,
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": runtime.python,
        "python_version": ".".join(runtime.python.split(".")[:2]),
        "sys_platform": "linux",
    }


def platforms(arch: str, glibc: str) -> Iterator[str]:
    """Platform tags from the newest that this glibc runs down to the oldest, each with its alias."""
    newest = int(glibc.split(".")[1])
    for minor in range(newest, _OLDEST_GLIBC.get(arch, 17) - 1, -1):
        yield f"manylinux_2_{minor}_{arch}"
        alias = _ALIASES.get(minor)
        if alias and arch in _ALIAS_ARCHES.get(alias, (arch,)):
            yield f"{alias}_{arch}"
    yield f"linux_{arch}"


def tags(runtime: RuntimeTree) -> tuple[str, ...]:
    """Wheel tags, the best first."""
    major, minor = (int(part) for part in runtime.python.split(".")[:2])
    places = list(platforms(runtime.arch, runtime.glibc))
    python = (major, minor)
    interpreter = f"cp{major}{minor}"
    exact = cpython_tags(python, abis=[interpreter], platforms=places)
    loose = compatible_tags(python, interpreter=interpreter, platforms=places)
    return tuple(dict.fromkeys(map(str, (*exact, *loose))))
