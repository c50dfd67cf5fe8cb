"""Fetchers that open no connection."""

from __future__ import annotations

from pathlib import Path


class OneFileFetcher:
    """Gives one file whatever it is asked for, and remembers what that was; with None it must not be asked."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.asked: list[tuple[str, str, str]] = []

    def pypi(self, requirement: str, *, file_name: str, sha256: str) -> Path:
        """See ports.Fetcher."""
        self.asked.append((requirement, file_name, sha256))
        assert self.file is not None, requirement
        return self.file

    def url(self, url: str, *, sha256: str | None, size: int | None = None) -> Path:
        """See ports.Fetcher; nothing here is fetched by its address."""
        raise AssertionError((url, sha256, size))
