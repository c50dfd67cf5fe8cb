"""Where two profiles differ. Pure: two values in, a list out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sampan.spec import codec
from sampan.spec.target import TargetProfile

_NO_FACTS = ("schema", "name", "sources")
_KEYS = ("path", "name")  # what tells the entries of a list apart


@dataclass(frozen=True)
class Difference:
    """One fact: its dotted name, and what each side says; None where it is unknown there.

    Of a list of words (features, ports) each side has only those that the other lacks.
    """

    fact: str
    a: str | None
    b: str | None


def differences(a: TargetProfile, b: TargetProfile) -> tuple[Difference, ...]:
    """In the profile's own order; empty where both say the same. Names and sources are no facts of the machine."""
    left = {name: value for name, value in codec.to_data(a).items() if name not in _NO_FACTS}
    right = {name: value for name, value in codec.to_data(b).items() if name not in _NO_FACTS}
    return tuple(_compare("", left, right))


def _compare(fact: str, a: object, b: object) -> Iterator[Difference]:
    if a == b:
        return
    if isinstance(a, Mapping) or isinstance(b, Mapping):
        left, right = _mapping(a), _mapping(b)
        for name in dict.fromkeys((*left, *right)):
            yield from _compare(f"{fact}.{name}".lstrip("."), left.get(name), right.get(name))
    elif _keyed(a) or _keyed(b):
        yield from _compare(fact, _by_key(a), _by_key(b))
    elif isinstance(a, list | tuple) and isinstance(b, list | tuple):
        yield Difference(fact, _words(a, b), _words(b, a))
    else:
        yield Difference(fact, _text(a), _text(b))


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _keyed(value: object) -> bool:
    return isinstance(value, list | tuple) and bool(value) and isinstance(value[0], Mapping)


def _by_key(value: object) -> dict[str, object]:
    """Entries by their path or name; of equals a number tells them apart."""
    found: dict[str, object] = {}
    for entry in value if isinstance(value, list | tuple) else ():
        key = next((str(entry[name]) for name in _KEYS if name in entry), "")
        count = sum(known.partition("#")[0] == key for known in found)
        found[f"{key}#{count + 1}" if count else key] = {n: v for n, v in entry.items() if n not in _KEYS}
    return found


def _words(mine: list[object] | tuple[object, ...], other: list[object] | tuple[object, ...]) -> str:
    return " ".join(str(word) for word in mine if word not in other)


def _text(value: object) -> str | None:
    if isinstance(value, list | tuple):
        return " ".join(str(word) for word in value)
    return None if value is None else str(value)
