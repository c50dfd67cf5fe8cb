"""Where things lie in the bundle's folders: what more than one stage has to know."""

from __future__ import annotations

LIBRARIES = "lib/sys"  # of runtime/: the shared libraries, flat
LOADER = f"{LIBRARIES}/ld.so"
PYTHON = "3.11"  # the private Python's version; the launcher has it built in


def python_command(tree: str, version: str) -> tuple[str, ...]:
    """The words that start the Python of a runtime tree without its launcher, apart from the host's libraries.

    ``tree`` is laid out as ``runtime/`` of the bundle, ``version`` is ``3.11`` or longer.
    """
    short = ".".join(version.split(".")[:2])
    libraries = f"{tree}/{LIBRARIES}"
    loader = (f"{tree}/{LOADER}", "--inhibit-cache", "--library-path", libraries)
    return (*loader, "--argv0", f"{tree}/bin/python3", f"{tree}/libexec/python{short}")
