"""The table of A64 encodings against LLVM's own (through capstone 6, which names the feature of each instruction)."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from capstone import CS_ARCH_AARCH64, CS_MODE_ARM, Cs

from sampan.audit.instructions import tables

GROUPS = {
    "HasLSE": {"atomics"},
    "HasRCPC": {"lrcpc"},
    "HasRCPC_IMMO": {"ilrcpc"},
    "HasRDM": {"asimdrdm"},
    "HasFullFP16": {"fphp", "asimdhp", "fcma"},
    "HasDotProd": {"asimddp"},
    "HasFP16FML": {"asimdfhm"},
    "HasMatMulInt8": {"i8mm", "svei8mm"},
    "HasBF16": {"bf16", "sve", "sve2"},
    "HasJS": {"jscvt"},
    "HasComplxNum": {"fcma"},
    "HasFRInt3264": {"frint"},
    "HasFlagM": {"flagm"},
    "HasAltNZCV": {"flagm2"},
    "HasPAuth": {"paca", "pacg"},
    "HasMTE": {"mte", "mops"},
    "HasAES": {"aes", "pmull"},
    "HasSHA2": {"sha1", "sha2"},
    "HasSHA3": {"sha3", "sha512"},
    "HasSM4": {"sm3", "sm4"},
    "HasCRC": {"crc32"},
    "HasSB": {"sb"},
    "HasMOPS": {"mops"},
    "HasCSSC": {"cssc"},
    "HasSVE": {"sve", "sve2", "svei8mm"},
    "HasSVEorSME": {"sve", "sve2", "svei8mm"},
    "HasSVE2": {"sve", "sve2", "svei8mm"},
    "HasSVE2orSME": {"sve", "sve2"},
    "HasSME": {"sme", "sve"},  # ADDSPL and its like stand among SVE's
    "HasSME2": {"sme", "sve", "sve2"},
}
BASE = {"HasNEON", "HasFPARMv8", "HasNEONorSME", "HasNEONandIsStreamingSafe"}
SPARSE = {"rng", "dcpop", "sme"}  # system registers and operations, for which LLVM's tables name no feature


@pytest.fixture(scope="module")
def decoder() -> Cs:
    """LLVM's tables."""
    found = Cs(CS_ARCH_AARCH64, CS_MODE_ARM)
    found.detail = True
    return found


def needs(decoder: Cs, word: int) -> frozenset[str] | None:
    """The features that LLVM names, None where it knows no such instruction."""
    for one in decoder.disasm(word.to_bytes(4, "little"), 0):
        names = (one.group_name(group) for group in one.groups)
        return frozenset(name for name in names if name.startswith("Has")) - BASE
    return None


def ours(word: int) -> str | None:
    """The feature that the table gives."""
    found = None
    for group in tables.word_table("aarch64").groups:
        if any(word & pattern.mask == pattern.value for pattern in group.patterns):
            found = group.feature
    return found


def _patterns() -> Iterator[tuple[str, tables.Pattern]]:
    for group in tables.word_table("aarch64").groups:
        for pattern in group.patterns:
            yield group.feature, pattern


@pytest.mark.parametrize(("feature", "pattern"), list(_patterns()))
def test_each_pattern_holds_instructions_of_its_feature_only(
    decoder: Cs, feature: str, pattern: tables.Pattern
) -> None:
    assert pattern.value & ~pattern.mask == 0
    rng = random.Random(pattern.value)
    decoded = 0
    for _ in range(60):
        word = rng.getrandbits(32) & ~pattern.mask | pattern.value
        named = needs(decoder, word) if ours(word) == feature else None
        if named is None:
            continue
        decoded += 1
        known = [GROUPS[name] for name in named if name in GROUPS]
        assert not known or any(feature in names for names in known), (hex(word), named)
        assert known or named or feature in SPARSE, hex(word)
    assert decoded or pattern.mask == 0xFFFFF8FF, "no word of this pattern is an instruction"


def test_random_words_are_of_the_feature_that_llvm_names(decoder: Cs) -> None:
    """Some of them; the integration tests try many."""
    assert agreed(decoder, words=8000, seed=7) > 200


def agreed(decoder: Cs, *, words: int, seed: int) -> int:
    """How many random words need a feature. Both ways: what LLVM says needs one of the listed features is found, and
    as one of that name."""
    rng = random.Random(seed)
    seen = 0
    for _ in range(words):
        word = rng.getrandbits(32)
        named = needs(decoder, word)
        known = [GROUPS[name] for name in named or () if name in GROUPS]
        if known and len(known) == len(named or ()):
            seen += 1
            assert ours(word) in set.union(*known), (hex(word), named)
        elif named is not None and not named:
            assert ours(word) in (None, "rng", "dcpop", "sme"), hex(word)
    return seen


def test_the_lookup_array_says_the_same_as_the_patterns() -> None:
    looked_up(words=4000, seed=11)


def looked_up(*, words: int, seed: int) -> None:
    """The array that is used for speed, beside the patterns themselves."""
    rng = random.Random(seed)
    groups = tables.word_table("aarch64").groups
    array = tables.lookup("aarch64")
    for _ in range(words):
        word = rng.getrandbits(32)
        number = int(array[word >> tables.KEY_SHIFT])
        candidate = None if number in (tables.NOTHING, tables.NOT_CODE) else groups[number - 1]
        sure = candidate and any(word & p.mask == p.value for p in candidate.patterns)
        assert (candidate.feature if candidate and sure else None) == ours(word), hex(word)


def test_what_is_no_code_is_none_for_llvm(decoder: Cs) -> None:
    """But for what only a kernel executes (ERET), and what a group above lists."""
    rng = random.Random(13)
    for pattern in tables.word_table("aarch64").not_code:
        for _ in range(40):
            word = rng.getrandbits(32) & ~pattern.mask | pattern.value
            if int(tables.lookup("aarch64")[word >> tables.KEY_SHIFT]) == tables.NOT_CODE:
                decoded = [one.mnemonic for one in decoder.disasm(word.to_bytes(4, "little"), 0)]
                assert set(decoded) <= {"udf", "eret", "eretaa", "eretab", "ldapr", "stlr"}, hex(word)


@pytest.mark.parametrize("word", [0xD65F03C0, 0xD503201F, 0xD503233F, 0xA9BF7BFD, 0x94000001, 0x0D20A410, 0x2E012022])
def test_plain_instructions_are_plain(word: int) -> None:
    """RET, NOP, PACIASP (a hint), STP, BL, ST2 of one lane, EXT."""
    assert tables.lookup("aarch64")[word >> tables.KEY_SHIFT] == tables.NOTHING
