"""Signing, verifying and trusting: the bundle's files, its signature and the machine's keys, brought together."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from sampan import disk
from sampan.bundle import archive, layout, manifest
from sampan.bundle.verify import Problem
from sampan.bundle.verify import verify as verify_folder
from sampan.errors import BadInputError, VerificationError
from sampan.flow import signing_keys
from sampan.spec.ports import Progress
from sampan.trust import envelope as dsse
from sampan.trust import policy, statement
from sampan.trust.envelope import Envelope
from sampan.trust.keys import PublicKey
from sampan.trust.policy import Verdict
from sampan.trust.statement import SignedBundle


@dataclass(frozen=True)
class BundleCheck:
    """What a bundle is, whether every file is as it was sealed, and who vouches for it."""

    SCHEMA: ClassVar[str] = "sampan/bundle-check/1"

    path: str
    name: str
    release: int
    files: int
    problems: tuple[Problem, ...]
    verdict: Verdict


@dataclass(frozen=True)
class Signed:
    """``sha256``: of the new tar; None where a folder was signed."""

    SCHEMA: ClassVar[str] = "sampan/signed/1"

    path: str
    fingerprint: str
    sha256: str | None


@dataclass(frozen=True)
class _Opened:
    """A folder or tar behind one face."""

    read: Callable[[str], bytes | None]
    check: Callable[[], tuple[Problem, ...]]
    sign: Callable[[bytes], str | None]


@contextmanager
def _opened(path: Path, progress: Progress) -> Iterator[_Opened]:
    if path.is_dir():
        yield _Opened(lambda name: _file(path / name), lambda: verify_folder(path), lambda text: _put(path, text))
        return
    try:
        stream = path.open("rb")
    except FileNotFoundError as error:
        raise BadInputError("file.missing", path=str(path)) from error
    except OSError as error:
        raise BadInputError("file.unreadable", path=str(path), detail=error.strerror) from error
    with stream:
        tar = archive.Archive(stream, path)
        yield _Opened(
            tar.read,
            lambda: archive.verify(tar, progress),
            lambda text: archive.with_signature(tar, text, progress),
        )


def _file(path: Path) -> bytes | None:
    if path.is_symlink() or not path.is_file():
        return None
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInputError("file.unreadable", path=str(path), detail=error.strerror) from error


def _put(folder: Path, signature: bytes) -> None:
    """Beside the list of sums, with its time: packing gives the same bytes whenever it is signed."""
    path = folder / layout.SIGNATURE
    with disk.filesystem_errors(path):
        when = (folder / layout.SUMS).stat().st_mtime
        disk.write(path, signature)
        for each in (path, folder):
            os.utime(each, (when, when))


def _claims(bundle: _Opened, path: Path) -> SignedBundle:
    """What a signature over this bundle must say. Raises BadInputError where it was not sealed."""
    text, listed = bundle.read(layout.MANIFEST), bundle.read(layout.SUMS)
    if text is None or listed is None:
        raise BadInputError("bundle.unsealed", path=str(path))
    facts = manifest.parse(text, where=f"{path}: {layout.MANIFEST}")
    return SignedBundle(facts.name, facts.release, hashlib.sha256(listed).hexdigest())


def check(path: Path, trusted: Sequence[PublicKey], progress: Progress) -> BundleCheck:
    """Read every byte of a bundle's folder or tar, executing none. Raises BadInputError, VerificationError."""
    with _opened(path, progress) as bundle:
        claims = _claims(bundle, path)
        verdict = _verdict(bundle, claims, path, trusted)
        files = len(manifest.parse(bundle.read(layout.MANIFEST) or b"", where=str(path)).digests) + 1
        return BundleCheck(str(path), claims.name, claims.release, files, bundle.check(), verdict)


def judge(path: Path, trusted: Sequence[PublicKey], progress: Progress) -> Verdict:
    """Who vouches for a bundle's list of files, without looking at the files. Raises as ``check`` does."""
    with _opened(path, progress) as bundle:
        return _verdict(bundle, _claims(bundle, path), path, trusted)


def _verdict(bundle: _Opened, claims: SignedBundle, path: Path, trusted: Sequence[PublicKey]) -> Verdict:
    where, text = f"{path}: {layout.SIGNATURE}", bundle.read(layout.SIGNATURE)
    signed = dsse.parse(text, where=where) if text is not None else None
    return policy.judge(signed, claims, trusted, signing_keys.verifier(), where=where)


def sign(path: Path, key_file: Path, password: bytes | None, progress: Progress) -> Signed:
    """Vouch for a bundle's folder or tar; signatures of others over the same files stay.

    Raises VerificationError where the bundle is not as it was sealed: nobody signs what is damaged.
    """
    from sampan.trust import signing

    private = signing.load_key(signing_keys.read_private(key_file), password, where=str(key_file))
    with _opened(path, progress) as bundle:
        claims = _claims(bundle, path)
        problems = bundle.check()
        if problems:
            raise VerificationError("trust.damaged", path=str(path), count=len(problems), first=problems[0].message)
        signed = signing.sign(_kept(bundle, claims, path), private)
        digest = bundle.sign(dsse.to_bytes(signed))
    return Signed(str(path), signing.public(private).fingerprint, digest)


def _kept(bundle: _Opened, claims: SignedBundle, path: Path) -> Envelope:
    """The envelope so far, if it is about this very bundle; else a fresh one."""
    payload, text = statement.of_bundle(claims), bundle.read(layout.SIGNATURE)
    earlier = dsse.parse(text, where=f"{path}: {layout.SIGNATURE}") if text is not None else None
    return earlier if earlier is not None and earlier.payload == payload else Envelope(payload, ())
