"""What a bundle says of itself: from its manifest and list of files, without reading the rest."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from sampan.bundle import layout
from sampan.bundle.contents import opened


@dataclass(frozen=True)
class BundleFacts:
    """``parts``: bytes by top folder; files beside them count as ``.``. ``signers``: ids that signatures claim,
    not checked here. ``predicate``: the manifest's facts as they stand there.
    """

    SCHEMA: ClassVar[str] = "sampan/bundle-facts/1"

    path: str
    name: str
    release: int
    files: int
    size_bytes: int
    parts: Mapping[str, int]
    signers: tuple[str, ...]
    materials: bool
    approval: bool
    predicate: Mapping[str, Any]


def inspect(path: Path) -> BundleFacts:
    """Raises BadInputError, VerificationError."""
    with opened(path) as bundle:
        parts: Counter[str] = Counter()
        for name, size in bundle.sizes.items():
            top, slash, _ = name.partition("/")
            parts[top if slash else "."] += size
        return BundleFacts(
            path=str(path),
            name=bundle.manifest.name,
            release=bundle.manifest.release,
            files=len(bundle.sizes),
            size_bytes=sum(parts.values()),
            parts=dict(sorted(parts.items(), key=lambda item: -item[1])),
            signers=_claimed(bundle.read(layout.SIGNATURE)),
            materials=layout.SBOM in bundle.sizes,
            approval=layout.APPROVAL in bundle.sizes,
            predicate=bundle.manifest.predicate,
        )


def _claimed(envelope: bytes | None) -> tuple[str, ...]:
    """Key ids of a DSSE envelope, for people; whoever wants to know who signed verifies."""
    try:
        found = json.loads(envelope or b"{}")
        return tuple(str(one["keyid"]) for one in found.get("signatures", ()))
    except (ValueError, TypeError, KeyError, AttributeError):
        return ()
