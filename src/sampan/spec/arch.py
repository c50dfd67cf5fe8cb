"""Names of architectures. Ours are those of ``uname -m`` on Linux; people and package indexes have others."""

from __future__ import annotations

from difflib import get_close_matches

KNOWN = ("aarch64", "loongarch64", "riscv64", "x86_64")
ALIASES = {
    "arm64": "aarch64",
    "arm64v8": "aarch64",
    "armv8": "aarch64",
    "armv8l": "aarch64",
    "amd64": "x86_64",
    "x64": "x86_64",
    "x86-64": "x86_64",
    "x86": "x86_64",
    "loong64": "loongarch64",
    "loongarch": "loongarch64",
    "rv64": "riscv64",
}


def meant(word: str) -> str | None:
    """The architecture that somebody who typed ``word`` most likely means; None where nothing is near."""
    plain = word.strip().lower().removeprefix("linux-").removeprefix("linux/")
    if plain in KNOWN:
        return plain
    if plain in ALIASES:
        return ALIASES[plain]
    near = get_close_matches(plain, (*KNOWN, *ALIASES), n=1, cutoff=0.7)
    return ALIASES.get(near[0], near[0]) if near else None
