"""Private keys and signatures: the workshop's half. Uses cryptography."""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from sampan.errors import BadInputError
from sampan.trust.envelope import Envelope, Signature, signed_bytes
from sampan.trust.keys import PublicKey

_ALGORITHM = ec.ECDSA(hashes.SHA256())
_SIGNING = ec.ECDSA(hashes.SHA256(), deterministic_signing=True)  # RFC 6979: the same bundle, the same bytes


def new_key(password: bytes | None) -> tuple[bytes, PublicKey]:
    """A fresh private key as PKCS#8 PEM, encrypted where there is a ``password``, and its public half."""
    private = ec.generate_private_key(ec.SECP256R1())
    protection = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    pem = private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection)
    return pem, public(private)


def load_key(pem: bytes, password: bytes | None, *, where: str) -> ec.EllipticCurvePrivateKey:
    """A private key. Raises BadInputError: not a key, another kind, wrong or missing password."""
    try:
        private = serialization.load_pem_private_key(pem, password)
    except TypeError as error:  # the library's word for: encrypted without a password, or the other way round
        raise BadInputError("trust.password", path=where) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise BadInputError("trust.password" if b"ENCRYPTED" in pem else "trust.not-a-key", path=where) from error
    if not isinstance(private, ec.EllipticCurvePrivateKey) or not isinstance(private.curve, ec.SECP256R1):
        raise BadInputError("trust.key-kind", path=where)
    return private


def public(private: ec.EllipticCurvePrivateKey) -> PublicKey:
    """Its public half."""
    spki = serialization.PublicFormat.SubjectPublicKeyInfo
    return PublicKey(private.public_key().public_bytes(serialization.Encoding.DER, spki))


def sign(envelope: Envelope, private: ec.EllipticCurvePrivateKey) -> Envelope:
    """The envelope with this key's signature added; an earlier one of the same key is replaced."""
    key = public(private)
    value = private.sign(signed_bytes(envelope.payload), _SIGNING)
    others = tuple(one for one in envelope.signatures if one.key_id != key.id)
    return Envelope(envelope.payload, (*others, Signature(key.id, value)))


def verify(key: PublicKey, message: bytes, signature: bytes) -> bool:
    """As ``libcrypto.verify``, by the workshop's own library."""
    try:
        public = serialization.load_der_public_key(key.der)
        if not isinstance(public, ec.EllipticCurvePublicKey):
            return False
        public.verify(signature, message, _ALGORITHM)
    except (InvalidSignature, ValueError):
        return False
    return True
