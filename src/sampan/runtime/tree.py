"""Make the private Python for one architecture: packages -> layout -> checked -> compiled."""

from __future__ import annotations

import hashlib
from importlib import resources
from pathlib import Path

from sampan import i18n
from sampan.errors import VerificationError
from sampan.runtime import debian
from sampan.runtime.deb import opened
from sampan.runtime.debian import Sources
from sampan.runtime.elf import highest, read_elf
from sampan.runtime.facts import Architecture, architecture, facts
from sampan.runtime.finish import check_closure, compile_tree, normalise
from sampan.runtime.index import Located
from sampan.runtime.layout import folder_writer, place_own, place_package
from sampan.spec.artefacts import RuntimePackage, RuntimeTree
from sampan.spec.layout import LIBRARIES
from sampan.spec.ports import Fetcher, Progress, Runner, Store

_FORMAT = 1  # raise when the layout changes in a way that the key's other parts do not show


def make(
    arch: str,
    *,
    launcher: Path,
    runner: Runner,
    fetcher: Fetcher,
    store: Store,
    progress: Progress,
    sources: Sources,
    host: RuntimeTree | None = None,
    refresh: bool = False,
) -> RuntimeTree:
    """The runtime for ``arch`` (``uname -m``), in the store.

    ``launcher`` is the static launcher for ``arch``. ``host`` is the runtime of this machine's architecture, which
    compiles the standard library; None where ``arch`` is this machine's own. ``sources`` gives the user's Debian
    mirrors; it is called only when something is missing in the store. Raises NetworkError, VerificationError,
    MissingToolError, IncompatibleError, BuildError.
    """
    names = architecture(arch)
    packages = debian.resolve(
        facts().packages,
        arch,
        sources=sources,
        fetcher=fetcher,
        runner=runner,
        store=store,
        progress=progress,
        refresh=refresh,
    )
    stub = launcher.read_bytes()

    def fill(folder: Path) -> None:
        _unpack(folder, packages, names, sources=sources, fetcher=fetcher, progress=progress)
        place_own(facts(), stub, folder_writer(folder))
        check_closure(folder)
        compile_tree(folder, Path(host.path) if host else folder, runner=runner, progress=progress)
        normalise(folder)

    key = {
        "format": _FORMAT,
        "facts": _digest(facts().text.encode()),
        "compiler": _digest((resources.files("sampan") / "data" / "compile_tree.py").read_bytes()),
        "launcher": _digest(stub),
        "packages": [item.sha256 for item in packages],
        "arch": arch,
    }
    return describe(store.get_or_make("runtime", key, fill), arch, packages)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _unpack(
    folder: Path,
    packages: tuple[Located, ...],
    arch: Architecture,
    *,
    sources: Sources,
    fetcher: Fetcher,
    progress: Progress,
) -> None:
    write = folder_writer(folder)
    with progress.task(i18n.text("runtime.unpacking", arch=arch.name), len(packages)) as task:
        for package in packages:
            task.update(note=package.name)
            with opened(debian.fetch(package, sources=sources, fetcher=fetcher)) as contents:
                place_package(package.name, contents, facts(), arch, write)
            task.advance()


def describe(folder: Path, arch: str, packages: tuple[Located, ...]) -> RuntimeTree:
    """The tree as a value; versions are read from the libraries themselves."""
    python = next(item.version for item in packages if item.name == f"python{facts().python}-minimal")
    return RuntimeTree(
        arch=arch,
        path=str(folder),
        python=python.partition("-")[0],
        glibc=_offered(folder / LIBRARIES / "libc.so.6", "GLIBC"),
        glibcxx=_offered(folder / LIBRARIES / "libstdc++.so.6", "GLIBCXX"),
        packages=tuple(RuntimePackage(item.name, item.version, item.arch, item.sha256) for item in packages),
    )


def _offered(path: Path, prefix: str) -> str:
    elf = read_elf(path)
    version = highest(elf.versions, prefix) if elf else None
    if version is None:
        raise VerificationError("runtime.no-versions", path=str(path), prefix=prefix)
    return version
