"""The keys that sign: making, reading and endorsing them, and what a machine trusts because of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from sampan import disk
from sampan.errors import BadInputError
from sampan.trust import envelope as dsse
from sampan.trust import keyring, policy, statement
from sampan.trust.envelope import Envelope
from sampan.trust.keys import PublicKey
from sampan.trust.policy import Verify

_MAX_KEY_BYTES = 64 << 10


@dataclass(frozen=True)
class Signing:
    """Who vouches for what is packed: the private key's file, and its password."""

    key: Path
    password: bytes | None = field(default=None, repr=False)

    def fingerprint(self) -> str:
        """Of the key's public half. Raises BadInputError where the key cannot sign."""
        from sampan.trust import signing

        private = signing.load_key(read_private(self.key), self.password, where=str(self.key))
        return signing.public(private).fingerprint


def verifier() -> Verify:
    """The workshop's library where there is one, else the private runtime's libcrypto."""
    if find_spec("cryptography"):
        from sampan.trust.signing import verify
    else:
        from sampan.trust.libcrypto import verify
    return verify


def read_private(path: Path) -> bytes:
    """A private key's file. Raises BadInputError: missing, not a file of a few kilobytes, readable by others."""
    try:
        facts = path.stat()
        if not path.is_file() or facts.st_size > _MAX_KEY_BYTES:
            raise BadInputError("trust.not-a-key", path=str(path))
        if facts.st_mode & 0o077:
            raise BadInputError("trust.key-open", path=str(path), mode=f"{facts.st_mode & 0o777:04o}")
        return path.read_bytes()
    except FileNotFoundError as error:
        raise BadInputError("file.missing", path=str(path)) from error
    except OSError as error:
        raise BadInputError("file.unreadable", path=str(path), detail=error.strerror) from error


def new_key(path: Path, password: bytes | None) -> PublicKey:
    """Write a fresh private key to ``path`` (0600) and its public half to ``path``.pub.

    Raises FilesystemError; BadInputError where either exists: a lost private key cannot be had back.
    """
    from sampan.trust import signing

    public_path = public_half(path)
    for each in (path, public_path):
        if each.exists() or each.is_symlink():
            raise BadInputError("trust.key-exists", path=str(each))
    private, public = signing.new_key(password)
    with disk.filesystem_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        disk.write(path, private, 0o600)
        disk.write(public_path, public.pem.encode())
    return public


def public_half(path: Path) -> Path:
    """Where the public half of the private key at ``path`` is written."""
    return path.with_name(f"{path.name}.pub")


def endorse(public: Path, key_file: Path, password: bytes | None, note: str) -> Path:
    """Let an old key vouch for a new one: writes ``<public>.dsse``. Raises BadInputError, FilesystemError."""
    from sampan.trust import signing

    key = keyring.read(public)
    private = signing.load_key(read_private(key_file), password, where=str(key_file))
    signed = signing.sign(Envelope(statement.of_key(key.id, note), ()), private)
    path = endorsement_of(public)
    with disk.filesystem_errors(path):
        disk.write(path, dsse.to_bytes(signed))
    return path


def endorsement_of(public: Path) -> Path:
    """Where the endorsement of a public key stands."""
    return public.with_name(f"{public.name}.dsse")


def is_vouched(public: Path, trusted: Sequence[PublicKey]) -> bool:
    """Whether an endorsement beside the key is by one that is trusted already. Raises VerificationError."""
    path = endorsement_of(public)
    if not path.is_file():
        return False
    signed = dsse.parse(path.read_bytes(), where=str(path))
    return policy.vouched(signed, keyring.read(public), trusted, verifier(), where=str(path))
