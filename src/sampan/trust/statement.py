"""What is signed for a bundle: an in-toto Statement whose one subject is SHA256SUMS, which covers every file.

Small enough to be read by eye after `base64 -d`. Name and release stand in it so that nobody can pass an older
release off as a newer one.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from sampan.errors import VerificationError

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
BUNDLE_TYPE = "urn:sampan:signed-bundle:1"
KEY_TYPE = "urn:sampan:endorsed-key:1"
SUMS = "SHA256SUMS"
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class SignedBundle:
    """``sums_sha256``: the digest of the file SHA256SUMS in hexadecimal."""

    name: str
    release: int
    sums_sha256: str


def of_bundle(bundle: SignedBundle) -> bytes:
    """The payload; the same bundle gives the same bytes."""
    predicate = {"name": bundle.name, "release": bundle.release}
    return _payload(SUMS, bundle.sums_sha256, BUNDLE_TYPE, predicate)


def of_key(key_id: str, note: str) -> bytes:
    """The payload by which an old key vouches for a new one. ``note``: why, for people."""
    return _payload("public-key", key_id, KEY_TYPE, {"note": note})


def bundle_of(payload: bytes, *, where: str) -> SignedBundle:
    """What a payload says of a bundle. Raises VerificationError; fields that it has besides are allowed."""
    digest, predicate = _read(payload, SUMS, BUNDLE_TYPE, where)
    name, release = predicate.get("name"), predicate.get("release")
    if not isinstance(name, str) or type(release) is not int:
        raise VerificationError("trust.statement", path=where)
    return SignedBundle(name, release, digest)


def key_of(payload: bytes, *, where: str) -> str:
    """The id of the key that a payload vouches for. Raises VerificationError."""
    return _read(payload, "public-key", KEY_TYPE, where)[0]


def _payload(subject: str, digest: str, kind: str, predicate: dict[str, Any]) -> bytes:
    data = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": subject, "digest": {"sha256": digest}}],
        "predicateType": kind,
        "predicate": predicate,
    }
    return (json.dumps(data, ensure_ascii=False, indent=1) + "\n").encode()


def _read(payload: bytes, subject: str, kind: str, where: str) -> tuple[str, dict[str, Any]]:
    """Digest and predicate; a statement over anything but exactly one ``subject`` is not ours."""
    try:
        data: Any = json.loads(payload)
        (only,) = data["subject"]
        digest, predicate = only["digest"]["sha256"], data["predicate"]
        ours = data["_type"] == STATEMENT_TYPE and data["predicateType"] == kind and only["name"] == subject
        whole = isinstance(predicate, dict) and _DIGEST.fullmatch(digest)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise VerificationError("trust.statement", path=where) from error
    if not ours or not whole:
        raise VerificationError("trust.statement", path=where)
    return digest, predicate
