"""The fields of a survey block: keys that may occur several times, and values as the script encodes them."""

from __future__ import annotations

from urllib.parse import unquote


class Fields:
    """Fields by key; a key may occur several times."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self.pairs = pairs

    def all(self, key: str) -> list[str]:
        """Every value of the key, still encoded."""
        return [value for name, value in self.pairs if name == key]

    def raw(self, key: str) -> str | None:
        """The first value, still encoded; None where the key is not there."""
        return next(iter(self.all(key)), None)

    def text(self, key: str) -> str | None:
        """The first value, decoded; None where it is empty or not there."""
        raw = self.raw(key)
        return decoded(raw) if raw else None

    def number(self, key: str, unit: int = 1, *, least: int = 0) -> int | None:
        """The first value times ``unit``; None for ``none``. Raises ValueError, also for less than ``least``."""
        raw = self.raw(key)
        if not raw or raw == "none":
            return None
        if int(raw) < least:
            raise ValueError(f"{key}={raw}")
        return int(raw) * unit


def decoded(value: str) -> str:
    """The script's ``enc`` turned back."""
    if value.startswith("%x"):
        return bytes.fromhex(value[2:]).decode("utf-8", "replace")
    return unquote(value.replace("_", " "))


def parts(value: str, count: int) -> list[str]:
    """The decoded parts of a composite value, at least so many."""
    parts = [decoded(part) for part in value.split(",")]
    return parts + [""] * (count - len(parts))
