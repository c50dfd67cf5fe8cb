"""From package contents to the runtime's own layout. Every file's place is decided here; nothing else is written."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from pathlib import Path

from sampan.errors import VerificationError
from sampan.runtime.deb import Contents
from sampan.runtime.facts import LOADER, Architecture, Facts
from sampan.spec.layout import LIBRARIES

APP_FROM_SITE = "../../../../app"  # runtime/lib/python3.x/site-packages -> app/ of the bundle

_SITECUSTOMIZE = '''\
"""Debian's site.py, frozen into the executable, knows dist-packages only: add upstream's site-packages."""

import os
import site

site.addsitedir(os.path.join(os.path.dirname(__file__), "site-packages"))
'''

Writer = Callable[[str, bytes, int], None]  # path in the runtime, content, mode


def folder_writer(root: Path) -> Writer:
    """Write below ``root`` with exact modes, whatever the umask."""

    def write(relative: str, data: bytes, mode: int) -> None:
        path = root / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(mode)

    return write


def place_package(name: str, contents: Contents, facts: Facts, arch: Architecture, write: Writer) -> None:
    """Write what the runtime takes from one package. Raises VerificationError where something is missing."""
    for soname in facts.packages[name]:
        _place_library(name, contents, soname, arch, write)
    executable = f"usr/bin/python{facts.python}"
    stdlib = f"usr/lib/python{facts.python}/"
    for path in contents.files():
        if path == executable:
            write(f"libexec/python{facts.python}", contents.read(path), 0o755)
        elif path.startswith(stdlib) and not facts.omits(path.removeprefix(stdlib)):
            relative = path.removeprefix(stdlib)
            data = _patched(relative, contents.read(path), facts)
            write(f"lib/python{facts.python}/{relative}", data, 0o644)
    _place_licence(name, contents, facts, write)


def _place_library(name: str, contents: Contents, soname: str, arch: Architecture, write: Writer) -> None:
    """A library lies in the multiarch folder below / or /usr, under its SONAME (a link or the file itself)."""
    wanted = arch.loader if soname == LOADER else soname
    for folder in (f"lib/{arch.triplet}", f"usr/lib/{arch.triplet}", "lib", "lib64", "usr/lib"):
        try:
            data = contents.read(f"{folder}/{wanted}")
        except KeyError:
            continue
        target = "ld.so" if soname == LOADER else soname
        write(f"{LIBRARIES}/{target}", data, 0o755 if soname == LOADER else 0o644)
        return
    raise VerificationError("runtime.no-library", package=name, library=wanted)


def _place_licence(name: str, contents: Contents, facts: Facts, write: Writer) -> None:
    """Every package's copyright travels. Packages of one source share one through a link: another of ours has it."""
    folder = f"usr/share/doc/{name}"
    try:
        write(f"share/licences/{name}", contents.read(f"{folder}/copyright"), 0o644)
    except KeyError:
        shared = posixpath.basename(contents.link(folder) or "")
        if shared not in facts.packages:
            raise VerificationError("runtime.no-licence", package=name) from None


def _patched(relative: str, data: bytes, facts: Facts) -> bytes:
    text = None
    for patch in facts.patches:
        if patch.file == relative:
            text = data.decode("utf-8") if text is None else text
            if text.count(patch.find) != 1:
                raise VerificationError("runtime.patch", file=relative, text=patch.find.strip().splitlines()[0])
            text = text.replace(patch.find, patch.replace)
    return data if text is None else text.encode("utf-8")


def place_own(facts: Facts, launcher: bytes, write: Writer) -> None:
    """The launcher, and what makes the tree's Python see the bundle's ``app/`` and nothing of the host.

    ``pyvenv.cfg`` without ``home`` moves no prefix; it only tells site.py to leave the user's own folder alone.
    """
    library = f"lib/python{facts.python}"
    write("bin/python3", launcher, 0o755)
    write("pyvenv.cfg", b"include-system-site-packages = false\n", 0o644)
    write(f"{library}/sitecustomize.py", _SITECUSTOMIZE.encode(), 0o644)
    write(f"{library}/site-packages/sampan-app.pth", f"{APP_FROM_SITE}\n".encode(), 0o644)
