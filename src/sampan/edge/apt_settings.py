"""The user's own Debian mirror, as apt is told of it (deb822 and one-line files) or as SAMPAN_DEBIAN_MIRROR says.

Formats: sources.list(5). Only entries that can carry Debian's own archive are taken; its signature is checked later.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from debian.deb822 import Deb822

from sampan.errors import MissingToolError, UsageError
from sampan.spec.debian import DebianSource

VARIABLE = "SAMPAN_DEBIAN_MIRROR"
KEYRING_VARIABLE = "SAMPAN_DEBIAN_KEYRING"
SUITE = "bookworm"  # the runtime's Debian, whatever release this machine runs
_RELEASES = ("buster", "bullseye", "bookworm", "trixie", "forky", "sid", "oldstable", "stable", "testing", "unstable")
_SUITE = re.compile(rf"^({'|'.join(_RELEASES)})(-updates|-security|/updates)?/?$")
_SCHEMES = ("http", "https", "file")
_ONE_LINE = re.compile(r"^deb\s+(?:\[(?P<options>[^\]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)\s+(?P<components>.+)$")


def debian_sources(
    environ: Mapping[str, str] | None = None, apt: Path = Path("/etc/apt")
) -> tuple[DebianSource, ...]:
    """The mirrors to take the runtime from, the main archive first.

    Raises MissingToolError where this machine's settings hold no Debian mirror, UsageError for a bad variable.
    """
    environ = os.environ if environ is None else environ
    named = environ.get(VARIABLE, "").split()
    found = _named(named) if named else _configured(apt)
    keyring = environ.get(KEYRING_VARIABLE)
    return tuple(replace(source, keyring=keyring) for source in found) if keyring else found


def _configured(apt: Path) -> tuple[DebianSource, ...]:
    found: dict[tuple[str, str], DebianSource] = {}
    for source in map(_ours, filter(_is_debian, _entries(apt))):
        found.setdefault((source.uri, source.suite), source)
    if not any(source.suite == SUITE for source in found.values()):
        raise MissingToolError("runtime.no-mirror", variable=VARIABLE, folder=str(apt))
    return tuple(sorted(found.values(), key=lambda source: source.suite != SUITE))


def _named(uris: Iterable[str]) -> tuple[DebianSource, ...]:
    """An address with ``security`` in its path is the security archive, any other the main one."""
    sources = []
    for uri in uris:
        parts = urlsplit(uri)
        suite = f"{SUITE}-security" if "security" in parts.path else SUITE
        source = DebianSource(uri.rstrip("/"), suite)
        if parts.scheme not in _SCHEMES or not (parts.netloc or parts.path):
            raise UsageError("runtime.bad-mirror", variable=VARIABLE, value=source.shown)
        sources.append(source)
    return tuple(sorted(sources, key=lambda source: source.suite != SUITE))


def _entries(apt: Path) -> Iterator[DebianSource]:
    folder = apt / "sources.list.d"
    files = [apt / "sources.list", *sorted(folder.glob("*.list")), *sorted(folder.glob("*.sources"))]
    for path in files:
        try:
            text = path.read_text(encoding="utf-8")
        except (FileNotFoundError, PermissionError, UnicodeDecodeError):
            continue  # apt itself passes over what it cannot read; another file may name the mirror
        yield from _deb822(text) if path.suffix == ".sources" else _one_line(text)


def _deb822(text: str) -> Iterator[DebianSource]:
    for stanza in Deb822.iter_paragraphs(text, use_apt_pkg=False):
        if "deb" not in stanza.get("Types", "").split() or stanza.get("Enabled", "yes").lower() in ("no", "false"):
            continue
        signed = stanza.get("Signed-By", "").split()
        for uri in stanza.get("URIs", "").split():
            for suite in stanza.get("Suites", "").split():
                components = tuple(stanza.get("Components", "").split())
                yield DebianSource(uri, suite, components, _keyring(signed))


def _one_line(text: str) -> Iterator[DebianSource]:
    for line in text.splitlines():
        match = _ONE_LINE.match(line.partition("#")[0].strip())
        if match:
            options = dict(part.partition("=")[::2] for part in (match["options"] or "").split())
            signed = options.get("signed-by", "").split(",")
            yield DebianSource(match["uri"], match["suite"], tuple(match["components"].split()), _keyring(signed))


def _keyring(signed: list[str]) -> str | None:
    """The keyring's path; an inline key or a fingerprint names no file."""
    paths = [entry for entry in signed if entry.startswith("/")]
    return paths[0] if paths else None


def _is_debian(source: DebianSource) -> bool:
    """Third-party archives bring their own key and path; Debian's suites have Debian's names."""
    parts = urlsplit(source.uri)
    return (
        parts.scheme in _SCHEMES
        and "main" in source.components
        and _SUITE.match(source.suite) is not None
        and any(segment.startswith("debian") for segment in parts.path.split("/"))
        and (source.keyring is None or "debian-archive" in source.keyring)
    )


def _ours(source: DebianSource) -> DebianSource:
    """The same mirror's entry for the runtime's release."""
    match = _SUITE.match(source.suite)
    part = (match[2] or "") if match else ""
    suffix = "-security" if part == "/updates" else part
    return replace(source, uri=source.uri.rstrip("/"), suite=SUITE + suffix, components=("main",))
