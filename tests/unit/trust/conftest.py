"""Two people who sign."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from sampan.trust import signing
from sampan.trust.keys import PublicKey


@dataclass(frozen=True)
class Signer:
    """A private key in both forms, and its public half."""

    private_pem: bytes
    private: ec.EllipticCurvePrivateKey
    public: PublicKey


def make_signer() -> Signer:
    """A fresh key."""
    pem, public = signing.new_key(None)
    return Signer(pem, signing.load_key(pem, None, where="new"), public)


@pytest.fixture(scope="session")
def ann() -> Signer:
    """Trusted in most tests."""
    return make_signer()


@pytest.fixture(scope="session")
def bob() -> Signer:
    """A stranger in most tests."""
    return make_signer()
