"""Who may ask what, and how much: keys as they are enforced. The file of keys is ``keys.py``'s."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from sampan.gateway.engine import Lane
from sampan.gateway.envelope import ApiError
from sampan.gateway.keys import Key, id_of

_NOBODY = hashlib.sha256(b"").hexdigest()  # compared with where there is no such key, so that it takes as long
_BEARER = b"bearer "


@dataclass(frozen=True)
class Caller:
    """``id`` is the key's, for logs and metrics. ``scopes`` None is all of them."""

    id: str
    scopes: frozenset[str] | None = None
    lane: Lane = Lane.INTERACTIVE


ANYBODY = Caller("-")
SELFTEST = Caller("selftest", frozenset(("embeddings", "chat")))  # of this machine: see local_token.py


class Bucket:
    """Refills with ``per_minute`` a minute and holds one minute's worth; it may be overdrawn by one request."""

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self._rate = per_minute / 60
        self._most = float(per_minute)
        self._clock = clock
        self._level = self._most
        self._at = clock()

    def wait(self) -> float:
        """Seconds until something is in it; 0 where there is."""
        now = self._clock()
        self._level = min(self._most, self._level + (now - self._at) * self._rate)
        self._at = now
        return 0.0 if self._level >= 1 else (1 - self._level) / self._rate

    def draw(self, amount: float) -> None:
        """Take it out."""
        self._level -= amount


class Allowance:
    """What one key has left."""

    def __init__(self, key: Key, clock: Callable[[], float]) -> None:
        self.running = 0
        self.concurrent = key.concurrent
        self.requests = Bucket(key.requests_per_minute, clock) if key.requests_per_minute else None
        self.tokens = Bucket(key.tokens_per_minute, clock) if key.tokens_per_minute else None

    def check(self) -> None:
        """Raises ApiError ``rate_limit_exceeded``."""
        if self.concurrent and self.running >= self.concurrent:
            raise ApiError("rate_limit_exceeded", limit=f"{self.concurrent} concurrent", retry_after=1)
        for bucket, what in ((self.requests, "requests/min"), (self.tokens, "tokens/min")):
            wait = bucket.wait() if bucket is not None else 0.0
            if wait:
                raise ApiError("rate_limit_exceeded", limit=what, retry_after=max(1, round(wait + 0.5)))


class Callers:
    """All keys in force; ``None``: no key is asked for, and everybody may do everything.

    ``local_token``: what the self-test on this machine sends in the place of a key; empty: nothing.
    """

    def __init__(
        self, keys: Iterable[Key] | None, clock: Callable[[], float] = time.monotonic, *, local_token: str = ""
    ) -> None:
        self._clock = clock
        self._local = hashlib.sha256(local_token.encode()).hexdigest() if local_token else ""
        self._keys: dict[str, tuple[Key, Caller]] | None = None
        self._allowances: dict[str, Allowance] = {}
        self.replace(keys)

    @property
    def are_asked(self) -> bool:
        """True where a key is needed."""
        return self._keys is not None

    def replace(self, keys: Iterable[Key] | None) -> None:
        """From now on these. A key that stays as it was keeps what it has used."""
        if keys is None:
            self._keys = None
            return
        old = self._keys or {}
        new = {key.id: (key, _caller(key)) for key in keys if not key.revoked}
        same = {name for name, (key, _) in new.items() if name in old and old[name][0] == key}
        allowances = {name: self._allowances[name] for name in same}
        for name, (key, _) in new.items():
            allowances.setdefault(name, Allowance(key, self._clock))
        self._keys, self._allowances = new, allowances

    def identify(self, headers: Mapping[bytes, bytes]) -> Caller:
        """Raises ApiError ``missing_key``, ``invalid_key``."""
        if self._keys is None:
            return ANYBODY
        given = _given(headers)
        if not given:
            raise ApiError("missing_key")
        digest = hashlib.sha256(given).hexdigest()
        if hmac.compare_digest(digest, self._local):
            return SELFTEST
        found = self._keys.get(id_of(given.decode("ascii", "replace")))
        right = hmac.compare_digest(digest, found[0].sha256 if found else _NOBODY)
        if found is None or not right:
            raise ApiError("invalid_key")
        return found[1]

    @contextmanager
    def counted(self, caller: Caller) -> Iterator[None]:
        """The caller's request runs. Raises ApiError ``rate_limit_exceeded``."""
        allowance = self._allowances.get(caller.id)
        if allowance is None:
            yield
            return
        allowance.check()
        allowance.running += 1
        if allowance.requests is not None:
            allowance.requests.draw(1)
        try:
            yield
        finally:
            allowance.running -= 1

    def used(self, caller: Caller, tokens: int) -> None:
        """Count tokens against the caller's limit."""
        allowance = self._allowances.get(caller.id)
        if allowance is not None and allowance.tokens is not None:
            allowance.tokens.draw(tokens)


def require(caller: Caller, scope: str) -> None:
    """Raises ApiError ``scope_missing``."""
    if caller.scopes is not None and scope not in caller.scopes and "admin" not in caller.scopes:
        raise ApiError("scope_missing", scope=scope)


def _caller(key: Key) -> Caller:
    return Caller(key.id, frozenset(key.scopes), Lane(key.lane))


def _given(headers: Mapping[bytes, bytes]) -> bytes:
    value = headers.get(b"authorization", b"")
    if value[: len(_BEARER)].lower() == _BEARER:
        return value[len(_BEARER) :].strip()
    return headers.get(b"x-api-key", b"").strip()
