"""The judgement: is a bundle signed by somebody whom this machine trusts? A pure function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from sampan.trust import statement
from sampan.trust.envelope import Envelope, signed_bytes
from sampan.trust.keys import PublicKey
from sampan.trust.statement import SignedBundle

#: key, message, signature -> whether it holds
Verify = Callable[[PublicKey, bytes, bytes], bool]
Status = Literal["trusted", "unknown-signer", "unsigned", "forged", "other-bundle"]


@dataclass(frozen=True)
class Verdict:
    """``signers``: ids of the trusted keys that signed. ``strangers``: ids that the other signatures claim.

    trusted: at least one trusted key signed exactly this bundle. unknown-signer: signed, by nobody we trust.
    unsigned: no signature at all. forged: a signature claims a trusted key and is not by it. other-bundle: the
    signed statement is about other files, another name or another release.
    """

    status: Status
    signers: tuple[str, ...] = ()
    strangers: tuple[str, ...] = ()

    @property
    def trusted(self) -> bool:
        """Whether the bundle may be installed without a person's word."""
        return self.status == "trusted"


def judge(
    envelope: Envelope | None, bundle: SignedBundle, trusted: Sequence[PublicKey], verify: Verify, *, where: str
) -> Verdict:
    """Judge a bundle's envelope, None where it has none. Raises VerificationError for a payload that is not ours.

    A stranger's signature beside a trusted one changes nothing: anybody can add one. One under a trusted key's id
    that does not hold is never overlooked.
    """
    if envelope is None or not envelope.signatures:
        return Verdict("unsigned")
    known = {key.id: key for key in trusted}
    message = signed_bytes(envelope.payload)
    signers: list[str] = []
    strangers: list[str] = []
    for one in envelope.signatures:
        claimed = [known[one.key_id]] if one.key_id in known else known.values()
        key = next((key for key in claimed if verify(key, message, one.value)), None)
        if key is None and one.key_id in known:
            return Verdict("forged", (), (one.key_id,))
        (strangers if key is None else signers).append(key.id if key else one.key_id)
    if statement.bundle_of(envelope.payload, where=where) != bundle:
        return Verdict("other-bundle", tuple(signers), tuple(strangers))
    return Verdict("trusted" if signers else "unknown-signer", tuple(signers), tuple(strangers))


def vouched(envelope: Envelope, key: PublicKey, trusted: Sequence[PublicKey], verify: Verify, *, where: str) -> bool:
    """Whether a trusted key signed that ``key`` may follow it. Raises VerificationError for another payload."""
    if statement.key_of(envelope.payload, where=where) != key.id:
        return False
    message = signed_bytes(envelope.payload)
    return any(verify(one, message, signed.value) for signed in envelope.signatures for one in trusted)
