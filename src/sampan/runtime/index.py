"""Debian's chain of trust: InRelease by its signature, each index by InRelease, each package by its index.

The signature's rule is apt's: at least one good signature by a key of the archive's keyring, none that is bad.
``Valid-Until`` is not enforced: offline mirrors are frozen on purpose, and clocks there drift.
"""

from __future__ import annotations

import lzma
import re
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from debian.deb822 import Deb822, Packages, Release
from debian.debian_support import Version

from sampan.errors import MissingToolError, VerificationError
from sampan.runtime.facts import facts
from sampan.spec.debian import DebianSource
from sampan.spec.ports import Fetcher, Runner

_NAME = re.compile(r"^Package: (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Located:
    """One package in one archive. ``path`` counts from the archive's root; ``arch`` is Debian's name."""

    name: str
    version: str
    arch: str
    suite: str
    uri: str  # the archive that it was resolved from
    path: str
    sha256: str
    size: int


def read_index(
    source: DebianSource, debian_arch: str, wanted: Collection[str], *, fetcher: Fetcher, runner: Runner
) -> tuple[Located, ...]:
    """The wanted packages that this suite has, all versions. Raises NetworkError, VerificationError."""
    release_file = fetcher.url(f"{source.uri}/dists/{source.suite}/InRelease", sha256=None)
    release = Release(verified_text(release_file, source, runner))
    if release.get("Origin") != "Debian":
        raise VerificationError("runtime.not-debian", host=source.shown, suite=source.suite)
    found: list[Located] = []
    for component in source.components:
        name = f"{component}/binary-{debian_arch}/Packages.xz"
        path = _index_file(source, release, name, fetcher)
        found += [_located(stanza, source) for stanza in _stanzas(path, wanted)]
    return tuple(found)


def verified_text(path: Path, source: DebianSource, runner: Runner) -> str:
    """The signed part of an InRelease file. Raises VerificationError, MissingToolError."""
    rings = _keyrings(source)
    with tempfile.TemporaryDirectory(prefix="sampan-release-") as folder:
        out = Path(folder) / "Release"
        options = [word for ring in rings for word in ("--keyring", ring)]
        printed = _gpgv(["--status-fd", "1", *options, "--output", str(out), str(path)], runner)
        words = re.findall(r"^\[GNUPG:\] (\w+)", printed, re.MULTILINE)
        if "GOODSIG" not in words or "BADSIG" in words or not out.is_file():
            detail = ", ".join(word for word in words if word.endswith(("SIG", "PUBKEY"))) or printed.strip()[-200:]
            raise VerificationError("runtime.signature", host=source.shown, suite=source.suite, detail=detail)
        return out.read_text(encoding="utf-8")


def _gpgv(words: list[str], runner: Runner) -> str:
    """What gpgv prints; its return code says nothing where one of several keys is not in the keyring."""
    try:
        return runner.run(["gpgv", *words]).output
    except MissingToolError as error:
        raise MissingToolError("runtime.no-gpgv") from error


def _keyrings(source: DebianSource) -> tuple[str, ...]:
    named = (source.keyring,) if source.keyring else ()
    rings = tuple(ring for ring in (*named, *facts().keyrings) if Path(ring).is_file())
    if not rings:
        raise MissingToolError("runtime.no-keyring", host=source.shown)
    return tuple(dict.fromkeys(rings))


def _index_file(source: DebianSource, release: Release, name: str, fetcher: Fetcher) -> Path:
    for entry in release.get("SHA256", ()):
        if entry["name"] == name:
            base = f"{source.uri}/dists/{source.suite}/"
            folder = name.rpartition("/")[0]
            by_hash = release.get("Acquire-By-Hash") == "yes"
            where = f"{folder}/by-hash/SHA256/{entry['sha256']}" if by_hash else name
            return fetcher.url(base + where, sha256=entry["sha256"], size=int(entry["size"]))
    raise VerificationError("runtime.no-index", host=source.shown, suite=source.suite, name=name)


def _stanzas(path: Path, wanted: Collection[str]) -> Iterator[Packages]:
    """Only the wanted stanzas are parsed: an index has 60 000."""
    for stanza in lzma.decompress(path.read_bytes()).decode("utf-8").split("\n\n"):
        name = _NAME.search(stanza)
        if name and name[1] in wanted:
            yield Packages(stanza.splitlines())


def _located(stanza: Deb822, source: DebianSource) -> Located:
    return Located(
        name=stanza["Package"],
        version=stanza["Version"],
        arch=stanza["Architecture"],
        suite=source.suite,
        uri=source.uri,
        path=stanza["Filename"],
        sha256=stanza["SHA256"],
        size=int(stanza["Size"]),
    )


def newest(found: Collection[Located]) -> dict[str, Located]:
    """The highest version of each package, by Debian's ordering."""
    best: dict[str, Located] = {}
    for item in found:
        if item.name not in best or Version(item.version) > Version(best[item.name].version):
            best[item.name] = item
    return best
