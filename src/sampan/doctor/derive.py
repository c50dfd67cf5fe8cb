"""Values that are computed from what a pattern extracted; a case names one with ``derive``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

_VEX, _EVEX = {"c4": "VEX: AVX, AVX2, FMA or BMI", "c5": "VEX: AVX or AVX2"}, {"62": "EVEX: AVX-512"}


def _trap(values: Mapping[str, str]) -> dict[str, str]:
    """The kernel's ``ip:… in LIB[base+size]``: where in the file the instruction is, and its first byte's class.

    For a mapping that does not begin at the file's start, newer kernels print the offset themselves.
    """
    found = {}
    if values.get("offset"):
        found["offset"] = f"0x{values['offset']}"
    elif values.get("ip") and values.get("base"):
        found["offset"] = hex(int(values["ip"], 16) - int(values["base"], 16))
    first = values.get("byte", "").lower().removeprefix("0x")
    if first:
        found["class"] = {**_VEX, **_EVEX}.get(first, f"first byte 0x{first}")
    return found


def _percent(values: Mapping[str, str]) -> dict[str, str]:
    """A KV pair of kilobytes as mebibytes, for people."""
    text = values.get("rss_kb", "")
    return {"rss": f"{int(text) >> 10} MiB"} if text.isdecimal() else {}


KNOWN: dict[str, Callable[[Mapping[str, str]], dict[str, str]]] = {"trap": _trap, "memory": _percent}
_VALUES = {"trap": frozenset({"offset", "class"}), "memory": frozenset({"rss"})}


def values(name: str) -> frozenset[str]:
    """The placeholders that a derivation fills."""
    return _VALUES.get(name, frozenset())
