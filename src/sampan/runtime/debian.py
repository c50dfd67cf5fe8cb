"""Debian packages for any architecture without dpkg or apt: resolve once, keep the result, fetch by hash."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path

from sampan import i18n
from sampan.errors import FilesystemError, MissingToolError, NetworkError
from sampan.runtime.facts import architecture, facts
from sampan.runtime.index import Located, newest, read_index
from sampan.spec.debian import DebianSource
from sampan.spec.ports import Fetcher, Progress, Runner, Store

Sources = Callable[[], tuple[DebianSource, ...]]  # called only when something is not in the store


def resolve(
    packages: Iterable[str],
    arch: str,
    *,
    sources: Sources,
    fetcher: Fetcher,
    runner: Runner,
    store: Store,
    progress: Progress,
    refresh: bool = False,
) -> tuple[Located, ...]:
    """The newest version of each package for ``arch`` (``uname -m``), in the given order.

    The result is kept in the store, and taken from there unless ``refresh``: later runs need no network and give
    the same bytes. Raises NetworkError, VerificationError, MissingToolError, IncompatibleError.
    """
    names = tuple(dict.fromkeys(packages))
    debian_arch = architecture(arch).debian
    lock = _lock_file(store, names, debian_arch)
    if not refresh and (kept := _read_lock(lock)):
        return kept
    title = i18n.text("runtime.resolving", arch=debian_arch)
    found: list[Located] = []
    places = sources()
    with progress.task(title, len(places)) as task:
        for source in places:
            task.update(note=source.suite)
            found += read_index(source, debian_arch, names, fetcher=fetcher, runner=runner)
            task.advance()
    best = newest(found)
    missing = [name for name in names if name not in best]
    if missing:
        raise NetworkError("runtime.no-package", packages=", ".join(missing), arch=debian_arch, suite=facts().suite)
    resolved = tuple(best[name] for name in names)
    _write_lock(lock, resolved)
    return resolved


def fetch(package: Located, *, sources: Sources, fetcher: Fetcher) -> Path:
    """The package's .deb, from the store or from any of the user's mirrors that has its suite."""
    failure: NetworkError | None = None
    for uri in _archives(package, sources):
        try:
            return fetcher.url(f"{uri}/{package.path}", sha256=package.sha256, size=package.size)
        except NetworkError as error:
            failure = failure or error
    assert failure is not None  # noqa: S101  (there is at least the archive that it was resolved from)
    raise failure


def _archives(package: Located, sources: Sources) -> tuple[str, ...]:
    """Today's mirrors of its suite; where the settings have none any more, the one that it was resolved from."""
    try:
        known = tuple(source.uri for source in sources() if source.suite == package.suite)
    except MissingToolError:
        known = ()
    return known or (package.uri,)


def fetch_package(
    name: str,
    arch: str,
    *,
    sources: Sources,
    fetcher: Fetcher,
    runner: Runner,
    store: Store,
    progress: Progress,
    refresh: bool = False,
) -> Path:
    """The .deb of one package for ``arch`` (``uname -m``), verified. Raises as ``resolve`` and ``fetch``."""
    (package,) = resolve(
        (name,),
        arch,
        sources=sources,
        fetcher=fetcher,
        runner=runner,
        store=store,
        progress=progress,
        refresh=refresh,
    )
    return fetch(package, sources=sources, fetcher=fetcher)


def _lock_file(store: Store, names: tuple[str, ...], debian_arch: str) -> Path:
    digest = hashlib.sha256(" ".join((facts().suite, debian_arch, *names)).encode()).hexdigest()[:16]
    return store.root / "resolved" / f"{facts().suite}-{debian_arch}-{digest}.json"


def _read_lock(path: Path) -> tuple[Located, ...] | None:
    """What was resolved before; None where there is nothing, or nothing that can be read (then it is made anew)."""
    try:
        return tuple(Located(**entry) for entry in json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _write_lock(path: Path, resolved: tuple[Located, ...]) -> None:
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    text = json.dumps([asdict(item) for item in resolved], indent=1) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        raise FilesystemError("disk.failed", path=str(path), detail=error.strerror or str(error)) from error
