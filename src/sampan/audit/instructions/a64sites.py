"""Where A64 code leads to given functions: calls, jumps, ``adr``, and ``adrp`` with ``add``."""

from __future__ import annotations

import numpy as np

from sampan.audit.instructions.arrays import collected, first_of_each
from sampan.audit.instructions.binary import Binary
from sampan.audit.instructions.layouts import Array
from sampan.audit.instructions.words import pieces

_FOLLOWS = 4  # words after an adrp in which its add stands


def find(binary: Binary, targets: Array) -> tuple[Array, Array]:
    """(addresses, targets), in the code's order."""
    at: list[Array] = []
    to: list[Array] = []
    wanted = np.sort(targets)
    for span in binary.code:
        for address, words, _, _ in pieces(binary, span):
            for places, leads in (_branches(words, address), *_pairs(words, address)):
                hit = np.searchsorted(wanted, leads)
                hit[hit == len(wanted)] = 0
                keep = wanted[hit] == leads
                at.append(places[keep])
                to.append(leads[keep])
    found = np.concatenate(at) if at else np.empty(0, np.int64)
    leads = np.concatenate(to) if to else found
    found, first = first_of_each(found)  # pieces overlap
    return found, leads[first]


def calls(binary: Binary) -> Array:
    """The distinct targets of all calls."""
    return collected(_called(words, address) for span in binary.code for address, words, _, _ in pieces(binary, span))


def _called(words: np.typing.NDArray[np.uint32], address: int) -> Array:
    places = np.flatnonzero(words & np.uint32(0xFC000000) == 0x94000000)
    return _signed(words[places], 26) * 4 + places * 4 + address


def _branches(words: np.typing.NDArray[np.uint32], address: int) -> tuple[Array, Array]:
    places = np.flatnonzero(words & np.uint32(0x7C000000) == 0x14000000)
    addresses = places * 4 + address
    return addresses, _signed(words[places], 26) * 4 + addresses


def _pairs(words: np.typing.NDArray[np.uint32], address: int) -> list[tuple[Array, Array]]:
    """Addresses that are computed; the place is that of the second instruction."""
    places = np.flatnonzero(words & np.uint32(0x1F000000) == 0x10000000)
    some = words[places]
    value = _signed(
        (some >> np.uint32(5) & np.uint32(0x7FFFF)) << np.uint32(2) | some >> np.uint32(29) & np.uint32(3), 21
    )
    addresses = places * 4 + address
    near = some >> np.uint32(31) == 0
    found = [(addresses[near], addresses[near] + value[near])]
    places, some = places[~near], some[~near]
    pages = (addresses[~near] & ~np.int64(0xFFF)) + (value[~near] << 12)
    for step in range(1, _FOLLOWS + 1):
        inside = places + step < len(words)
        second = words[places[inside] + step]
        adds = (second & np.uint32(0xFFC00000) == 0x91000000) & (
            second >> np.uint32(5) & np.uint32(31) == some[inside] & np.uint32(31)
        )
        where = (places[inside][adds] + step) * 4 + address
        low = (second[adds] >> np.uint32(10) & np.uint32(0xFFF)).astype(np.int64)
        found.append((where, pages[inside][adds] + low))
    return found


def _signed(values: np.typing.NDArray[np.uint32], bits: int) -> Array:
    numbers = values.astype(np.int64) & ((1 << bits) - 1)
    return numbers - ((numbers >> (bits - 1)) << bits)
