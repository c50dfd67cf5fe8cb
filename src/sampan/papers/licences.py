"""Licences by their SPDX names, from what people wrote (``data/papers.toml``)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model.license import License

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@cache
def _data(file: str = "papers.toml") -> Mapping[str, Any]:
    found: Mapping[str, Any] = tomllib.loads((resources.files("sampan") / "data" / file).read_text(encoding="utf-8"))
    return found


def said(text: str | None) -> list[License]:
    """One licence: an SPDX name or expression where there is one for the text, else the text; none for none."""
    if not text or not text.strip():
        return []
    plain = text.strip()
    return [LicenseFactory().make_from_string(_data()["aliases"].get(plain.lower(), _spdx_case(plain)))]


def _spdx_case(text: str) -> str:
    """Model cards write ``apache-2.0``; SPDX's names are told apart by case."""
    from cyclonedx.spdx import fixup_id  # noqa: PLC0415

    return fixup_id(text) or text


def runtime() -> Mapping[str, str]:
    """By Debian package."""
    found: Mapping[str, str] = _data()["runtime"]
    return found


def suite() -> str:
    """Of the distribution that the packages are from."""
    return str(_data("runtime.toml")["suite"])


def engine() -> str:
    """Of the engine itself."""
    return str(_data()["engine"]["licence"])


def linked() -> Mapping[str, str]:
    """What is linked into the engine, by the name of its licence text."""
    found: Mapping[str, str] = _data()["engine"]["linked"]
    return found


def source_of(digest: str) -> str:
    """A package URL of the archive with this SHA-256, where it is the pinned one; else what says only the hash."""
    pinned = _data("pins.toml")["engine"]
    name, _, version = pinned["requirement"].partition("==")
    if digest == pinned["sha256"]:
        return f"pkg:pypi/{name}@{version}?file_name={pinned['file_name']}"
    return f"urn:sha256:{digest}"
