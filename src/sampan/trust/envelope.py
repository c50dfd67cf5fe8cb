"""The DSSE envelope: a payload and signatures over it and its type.

Format: https://github.com/secure-systems-lab/dsse, protocol.md and envelope.md, version 1.0.2. Readers keep unknown
fields out of their judgement; they are not signed.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any

from sampan.errors import VerificationError

PAYLOAD_TYPE = "application/vnd.in-toto+json"
MAX_BYTES = 1 << 20  # of a whole envelope; ours have about a kilobyte
MAX_SIGNATURES = 16


@dataclass(frozen=True)
class Signature:
    """``key_id``: see ``keys.PublicKey.id``, a hint only. ``value``: ECDSA in DER, as openssl writes it."""

    key_id: str
    value: bytes


@dataclass(frozen=True)
class Envelope:
    """A payload and who signed it."""

    payload: bytes
    signatures: tuple[Signature, ...]


def signed_bytes(payload: bytes, payload_type: str = PAYLOAD_TYPE) -> bytes:
    """What is signed: DSSE's pre-authentication encoding."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def to_bytes(envelope: Envelope) -> bytes:
    """One fixed form, a field a line, so that `sed` finds payload and signatures on any target."""
    data = {
        "payloadType": PAYLOAD_TYPE,
        "payload": base64.b64encode(envelope.payload).decode(),
        "signatures": [
            {"keyid": one.key_id, "sig": base64.b64encode(one.value).decode()} for one in envelope.signatures
        ],
    }
    return (json.dumps(data, indent=1) + "\n").encode()


def parse(text: bytes, *, where: str) -> Envelope:
    """An envelope of ours. Raises VerificationError: damaged, cut short, another type, too large."""
    try:
        return _envelope(json.loads(text if len(text) <= MAX_BYTES else b""))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise VerificationError("trust.envelope", path=where) from error


def _envelope(data: Any) -> Envelope:
    """Raises ValueError and its like for any other shape."""
    if data["payloadType"] != PAYLOAD_TYPE:
        raise ValueError(data["payloadType"])
    listed = data["signatures"]
    if not isinstance(listed, list) or len(listed) > MAX_SIGNATURES:
        raise ValueError("signatures")
    signatures = tuple(Signature(_text(one.get("keyid", "")), _decode(one["sig"])) for one in listed)
    return Envelope(_decode(data["payload"]), signatures)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _decode(value: object) -> bytes:
    try:
        return base64.b64decode(_text(value), validate=True)
    except binascii.Error as error:
        raise ValueError(value) from error
