"""Envelopes and the judgement over them; both verifiers are held to the same tests."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.trust.conftest import Signer

from sampan.errors import VerificationError
from sampan.trust import envelope as dsse
from sampan.trust import libcrypto, policy, signing, statement
from sampan.trust.envelope import Envelope, Signature
from sampan.trust.keys import PublicKey
from sampan.trust.policy import Verify
from sampan.trust.statement import SignedBundle

BUNDLE = SignedBundle("minilm", 3, "ab" * 32)
PAYLOAD = statement.of_bundle(BUNDLE)


@pytest.fixture(params=[signing.verify, libcrypto.verify], ids=["cryptography", "libcrypto"])
def verify(request: pytest.FixtureRequest) -> Verify:
    found: Verify = request.param
    return found


def signed(*signers: Signer, payload: bytes = PAYLOAD) -> Envelope:
    made = Envelope(payload, ())
    for each in signers:
        made = signing.sign(made, each.private)
    return made


def test_the_encoding_is_that_of_the_dsse_specification() -> None:
    # the specification's own example
    assert dsse.signed_bytes(b"hello world", "http://example.com/HelloWorld") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_an_envelope_survives_its_file(ann: Signer, bob: Signer) -> None:
    made = signed(ann, bob)
    assert dsse.parse(dsse.to_bytes(made), where="x") == made
    assert dsse.to_bytes(signed(ann)) == dsse.to_bytes(signed(ann))


def test_signing_again_replaces_the_own_signature_only(ann: Signer, bob: Signer) -> None:
    again = signing.sign(signed(ann, bob), ann.private)
    assert sorted(one.key_id for one in again.signatures) == sorted((ann.public.id, bob.public.id))


def test_a_trusted_signature_is_trusted(verify: Verify, ann: Signer, bob: Signer) -> None:
    verdict = policy.judge(signed(ann), BUNDLE, [bob.public, ann.public], verify, where="x")
    assert (verdict.status, verdict.signers, verdict.strangers) == ("trusted", (ann.public.id,), ())


def test_a_strangers_second_signature_changes_nothing_and_is_named(verify: Verify, ann: Signer, bob: Signer) -> None:
    verdict = policy.judge(signed(ann, bob), BUNDLE, [ann.public], verify, where="x")
    assert (verdict.status, verdict.strangers) == ("trusted", (bob.public.id,))
    assert policy.judge(signed(bob), BUNDLE, [ann.public], verify, where="x").status == "unknown-signer"
    assert policy.judge(signed(ann), BUNDLE, [], verify, where="x").status == "unknown-signer"


def test_a_signature_without_a_key_id_is_tried_with_every_key(verify: Verify, ann: Signer, bob: Signer) -> None:
    nameless = replace(signed(ann), signatures=(Signature("", signed(ann).signatures[0].value),))
    assert policy.judge(nameless, BUNDLE, [bob.public, ann.public], verify, where="x").signers == (ann.public.id,)


def test_no_signature_is_unsigned(verify: Verify, ann: Signer) -> None:
    assert policy.judge(None, BUNDLE, [ann.public], verify, where="x").status == "unsigned"
    assert policy.judge(Envelope(PAYLOAD, ()), BUNDLE, [ann.public], verify, where="x").status == "unsigned"


@pytest.mark.parametrize(
    "other",
    [replace(BUNDLE, release=2), replace(BUNDLE, name="other"), replace(BUNDLE, sums_sha256="cd" * 32)],
    ids=["replayed older release", "renamed", "other files"],
)
def test_a_signature_of_another_bundle_is_no_signature_of_this_one(
    verify: Verify, ann: Signer, other: SignedBundle
) -> None:
    made = signed(ann, payload=statement.of_bundle(other))
    assert policy.judge(made, BUNDLE, [ann.public], verify, where="x").status == "other-bundle"


def forge_value(made: Envelope, bob: Signer) -> Envelope:
    return replace(made, signatures=(Signature(made.signatures[0].key_id, signed(bob).signatures[0].value),))


def cut_value(made: Envelope, bob: Signer) -> Envelope:
    return replace(made, signatures=(Signature(made.signatures[0].key_id, made.signatures[0].value[:-1]),))


def empty_value(made: Envelope, bob: Signer) -> Envelope:
    return replace(made, signatures=(Signature(made.signatures[0].key_id, b""),))


def longer_value(made: Envelope, bob: Signer) -> Envelope:
    return replace(made, signatures=(Signature(made.signatures[0].key_id, made.signatures[0].value + b"\0"),))


def other_payload(made: Envelope, bob: Signer) -> Envelope:
    return replace(made, payload=statement.of_bundle(replace(BUNDLE, release=9)))


@pytest.mark.parametrize("forge", [forge_value, cut_value, empty_value, longer_value, other_payload])
def test_what_only_claims_a_trusted_key_is_forged(
    verify: Verify, ann: Signer, bob: Signer, forge: Callable[[Envelope, Signer], Envelope]
) -> None:
    assert policy.judge(forge(signed(ann), bob), BUNDLE, [ann.public], verify, where="x").status == "forged"


def test_no_single_changed_bit_of_a_signature_is_accepted_by_either(verify: Verify, ann: Signer) -> None:
    message, value = dsse.signed_bytes(PAYLOAD), signed(ann).signatures[0].value
    assert verify(ann.public, message, value)
    for position in range(0, len(value) * 8, 5):
        changed = bytearray(value)
        changed[position // 8] ^= 1 << position % 8
        assert not verify(ann.public, message, bytes(changed))


def test_a_key_that_is_no_point_of_the_curve_verifies_nothing(verify: Verify, ann: Signer) -> None:
    nowhere = PublicKey(ann.public.der[:27] + bytes(64))
    assert not verify(nowhere, dsse.signed_bytes(PAYLOAD), signed(ann).signatures[0].value)


def test_an_endorsement_holds_for_its_key_by_a_trusted_one_only(verify: Verify, ann: Signer, bob: Signer) -> None:
    made = signed(ann, payload=statement.of_key(bob.public.id, "2027"))
    assert policy.vouched(made, bob.public, [ann.public], verify, where="x")
    assert not policy.vouched(made, ann.public, [ann.public], verify, where="x")
    assert not policy.vouched(made, bob.public, [bob.public], verify, where="x")
    with pytest.raises(VerificationError):  # a bundle's signature endorses no key
        policy.vouched(signed(ann), bob.public, [ann.public], verify, where="x")
    with pytest.raises(VerificationError):  # nor an endorsement a bundle
        policy.judge(made, BUNDLE, [ann.public], verify, where="x")


def damaged(change: Callable[[dict[str, Any]], object], ann: Signer) -> bytes:
    data = json.loads(dsse.to_bytes(signed(ann)))
    change(data)
    return json.dumps(data).encode()


WRONG: dict[str, Callable[[dict[str, Any]], object]] = {
    "another type": lambda data: data.update(payloadType="text/plain"),
    "no payload": lambda data: data.pop("payload"),
    "payload not base64": lambda data: data.update(payload="%%%"),
    "signatures no list": lambda data: data.update(signatures={}),
    "signature no object": lambda data: data.update(signatures=["x"]),
    "signature without value": lambda data: data.update(signatures=[{}]),
    "key id a number": lambda data: data["signatures"][0].update(keyid=5),
    "thousands of signatures": lambda data: data.update(signatures=data["signatures"] * 5000),
}


@pytest.mark.parametrize("case", WRONG)
def test_an_envelope_of_another_shape_is_refused(case: str, ann: Signer) -> None:
    with pytest.raises(VerificationError) as raised:
        dsse.parse(damaged(WRONG[case], ann), where="SHA256SUMS.dsse")
    assert raised.value.key == "trust.envelope"


def test_unknown_fields_do_not_matter(ann: Signer) -> None:
    text = damaged(lambda data: data.update(note="x") or data["signatures"][0].update(cert="y"), ann)
    assert dsse.parse(text, where="x") == signed(ann)


@settings(max_examples=60, deadline=None)
@given(text=st.binary(max_size=200))
def test_garbage_is_refused_as_one(text: bytes) -> None:
    with pytest.raises(VerificationError):
        dsse.parse(text, where="x")
    with pytest.raises(VerificationError):
        statement.bundle_of(text, where="x")


def test_a_cut_envelope_is_refused_wherever_it_is_cut(ann: Signer) -> None:
    text = dsse.to_bytes(signed(ann)).rstrip()
    for end in range(0, len(text), 7):
        with pytest.raises(VerificationError):
            dsse.parse(text[:end], where="x")


def test_a_statement_over_two_subjects_is_not_ours() -> None:
    data = json.loads(PAYLOAD)
    data["subject"] *= 2
    with pytest.raises(VerificationError):
        statement.bundle_of(json.dumps(data).encode(), where="x")


def test_the_payload_is_readable_by_eye(ann: Signer) -> None:
    text = base64.b64decode(json.loads(dsse.to_bytes(signed(ann)))["payload"]).decode()
    assert '"release": 3' in text
    assert '"name": "minilm"' in text
