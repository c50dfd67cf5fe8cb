"""Public keys: ECDSA on P-256, as PEM files that every `openssl` reads, named by the SHA-256 of their DER form."""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass

from sampan.errors import BadInputError

_BEGIN, _END = "-----BEGIN PUBLIC KEY-----", "-----END PUBLIC KEY-----"
_LINE = 64  # characters of base64 in a line of PEM, RFC 7468
_MAX_BYTES = 4096
# SubjectPublicKeyInfo of an uncompressed point on prime256v1: everything before the point is fixed (RFC 5480).
_SPKI = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200") + b"\x04"
_SPKI_BYTES = len(_SPKI) + 64
_PREFIX = "SHA256:"


@dataclass(frozen=True)
class PublicKey:
    """One key. ``der`` is its SubjectPublicKeyInfo, 91 bytes."""

    der: bytes

    @property
    def id(self) -> str:
        """SHA-256 of the DER form in hexadecimal; `openssl pkey -pubin -outform DER | sha256sum` gives the same."""
        return hashlib.sha256(self.der).hexdigest()

    @property
    def fingerprint(self) -> str:
        """The id as people compare it, over the telephone for instance."""
        return _PREFIX + self.id

    @property
    def pem(self) -> str:
        """The PEM file's text."""
        text = base64.b64encode(self.der).decode()
        lines = [text[start : start + _LINE] for start in range(0, len(text), _LINE)]
        return "\n".join((_BEGIN, *lines, _END, ""))


def parse(pem: bytes, *, where: str) -> PublicKey:
    """The key of a PEM file. Raises BadInputError: not PEM, a private key, another kind of key."""
    try:
        text = pem.decode("ascii") if len(pem) <= _MAX_BYTES else ""
    except UnicodeDecodeError:
        text = ""
    if "PRIVATE KEY" in text:
        raise BadInputError("trust.private-key", path=where)
    _, begin, rest = text.partition(_BEGIN)
    body, end, _ = rest.partition(_END)
    if not begin or not end:
        raise BadInputError("trust.not-a-key", path=where)
    try:
        der = base64.b64decode("".join(body.split()), validate=True)
    except binascii.Error as error:
        raise BadInputError("trust.not-a-key", path=where) from error
    return from_der(der, where=where)


def from_der(der: bytes, *, where: str) -> PublicKey:
    """The key of its DER form. Raises BadInputError: not of P-256. Only libcrypto tells a wrong point."""
    if len(der) != _SPKI_BYTES or not der.startswith(_SPKI):
        raise BadInputError("trust.key-kind", path=where)
    return PublicKey(der)


def same_fingerprint(key: PublicKey, typed: str) -> bool:
    """Whether a person's copy of the fingerprint is this key's; prefix, colons, spaces and case do not matter."""
    plain = "".join(typed.split()).replace(":", "").lower().removeprefix("sha256")
    return plain == key.id
