"""What differs between two bundles: files by their digests, facts by their manifests and plans."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from sampan.bundle import layout
from sampan.bundle.contents import Contents, opened

_OWN = ("plan.sha256", "programs", "schema")  # said better by the files and by the plan's own fields


@dataclass(frozen=True)
class Change:
    """One thing. ``before`` and ``after``: None where it was not there, or is no longer."""

    what: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class BundleDiff:
    """``added``, ``removed``, ``changed``: paths. ``moved``: (before, after) of equal files under another name.

    ``travels_bytes``: of the files in ``after`` whose bytes ``before`` does not have, before any compression.
    """

    SCHEMA: ClassVar[str] = "sampan/bundle-diff/1"

    before: str
    after: str
    same: int
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    moved: tuple[tuple[str, str], ...]
    facts: tuple[Change, ...]
    travels_bytes: int


def diff(before: Path, after: Path) -> BundleDiff:
    """Raises BadInputError, VerificationError."""
    with opened(before) as old, opened(after) as new:
        gone, come = set(old.digests) - set(new.digests), set(new.digests) - set(old.digests)
        homes = {old.digests[path]: path for path in sorted(gone)}
        moved = {path: homes[new.digests[path]] for path in come if new.digests[path] in homes}
        both = set(old.digests) & set(new.digests)
        changed = sorted(path for path in both if old.digests[path] != new.digests[path])
        known = set(old.digests.values())
        return BundleDiff(
            before=str(before),
            after=str(after),
            same=len(both) - len(changed),
            added=tuple(sorted(come - set(moved))),
            removed=tuple(sorted(gone - set(moved.values()))),
            changed=tuple(changed),
            moved=tuple(sorted((was, now) for now, was in moved.items())),
            facts=_facts(old, new),
            travels_bytes=sum(new.sizes.get(p, 0) for p, digest in new.digests.items() if digest not in known),
        )


def _facts(old: Contents, new: Contents) -> tuple[Change, ...]:
    was, now = dict(_told(old)), dict(_told(new))
    names = [name for name in sorted({*was, *now}) if was.get(name) != now.get(name)]
    return tuple(Change(name, was.get(name), now.get(name)) for name in names if not name.startswith(_OWN))


def _told(bundle: Contents) -> Iterator[tuple[str, str]]:
    yield from _flat("", bundle.manifest.predicate)
    yield from _flat("plan.", _plan(bundle))


def _plan(bundle: Contents) -> object:
    try:
        return json.loads(bundle.read(layout.PLAN) or b"{}")
    except ValueError:
        return {}


def _flat(prefix: str, value: object) -> Iterator[tuple[str, str]]:
    """Leaves by dotted name; the items of a list by their own names, where they have one."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _flat(f"{prefix}{name}.", item)
    elif isinstance(value, list) and value and all(isinstance(item, Mapping) and "name" in item for item in value):
        for item in value:
            rest = {name: each for name, each in item.items() if name != "name"}
            yield from _flat(f"{prefix}{item['name']}.", rest)
    else:
        yield prefix.removesuffix("."), value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
