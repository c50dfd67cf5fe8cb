"""APPROVAL.txt: one page, Chinese and English, that a security officer can read, check and sign."""

from __future__ import annotations

import hashlib
import json
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sampan import disk, i18n
from sampan.bundle import layout

_BUFFER_BYTES = 1 << 20
_WIDTH = 110
_LANGUAGES = ("zh", "en")  # who signs reads Chinese first
_ROWS = ("purpose", "target", "contents", "origins", "users", "port", "network")
_OUTCOMES = ("audit", "rehearsal", "signer")


@dataclass(frozen=True)
class Digests:
    """Of one file, in hexadecimal. ``sm3`` None where this machine's OpenSSL has no SM3 (GB/T 32905)."""

    path: str
    sha256: str
    sm3: str | None


def write(folder: Path, predicate: Mapping[str, Any], sha256: Mapping[str, str], signer: str | None) -> str:
    """Write the page; its SHA-256. Raises OSError."""
    plan = json.loads((folder / layout.PLAN).read_bytes())
    materials = (folder / layout.SBOM).read_bytes() if layout.SBOM in sha256 else None
    hashed = digests(folder, chosen(predicate, sha256), sha256)
    text = sheet(predicate, plan, materials, hashed, signer).encode()
    disk.write(folder / layout.APPROVAL, text)
    return hashlib.sha256(text).hexdigest()


def chosen(predicate: Mapping[str, Any], sha256: Mapping[str, str]) -> tuple[str, ...]:
    """The files whose digests the page shows: weights, engine, bill of materials. SHA256SUMS has the others."""
    engine = f"{layout.ENGINE}/{predicate['engine']['name']}/"
    programs = sorted(path for path in sha256 if path.startswith(engine) and "/LICENSE" not in path)
    wanted = (predicate["weights"]["file"], *programs, layout.SBOM)
    return tuple(path for path in wanted if path in sha256)


def digests(folder: Path, paths: Sequence[str], sha256: Mapping[str, str]) -> tuple[Digests, ...]:
    """Read each file once for its SM3. Raises OSError."""
    return tuple(Digests(path, sha256[path], _sm3(folder / path)) for path in paths)


def _sm3(path: Path) -> str | None:
    if "sm3" not in hashlib.algorithms_available:
        return None
    digest = hashlib.new("sm3")
    with path.open("rb", buffering=0) as stream:
        while piece := stream.read(_BUFFER_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def sheet(
    predicate: Mapping[str, Any],
    plan: Mapping[str, Any],
    materials: bytes | None,
    hashed: Sequence[Digests],
    signer: str | None,
) -> str:
    """The page. ``predicate`` with audit and rehearsal; ``materials``: the SBOM, None where there is none."""
    values = _values(predicate, plan)
    blocks = [[i18n.text_in(each, "approval.title", **values) for each in _LANGUAGES]]
    for language in _LANGUAGES:
        told = {
            "audit": _outcome(language, "audit", predicate["audit"]),
            "rehearsal": _outcome(language, "rehearsal", predicate["rehearsal"]),
            "signer": i18n.text_in(language, "approval.signed" if signer else "approval.unsigned", key=signer),
        }
        blocks.append(
            [i18n.text_in(language, f"approval.{row}", **{**values, **told}) for row in (*_ROWS, *_OUTCOMES)]
        )
    licences = f"{_both('approval.licences')}  {_licences(materials)}"
    blocks.append(textwrap.wrap(licences, _WIDTH, subsequent_indent="    ", break_long_words=False))
    blocks += [list(_hash_lines(hashed)), [i18n.text_in(each, "approval.check") for each in _LANGUAGES]]
    blocks.append([_line_to_sign(who) for who in ("requester", "reviewer", "approver")])
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _line_to_sign(who: str) -> str:
    named = " ".join(i18n.text_in(each, f"approval.{who}") for each in _LANGUAGES)
    return f"{named:24} ______________________________    日期 Date ________________"


def _both(key: str) -> str:
    return i18n.text_in("zh", key) + "  " + i18n.text_in("en", key)


def _values(predicate: Mapping[str, Any], plan: Mapping[str, Any]) -> dict[str, object]:
    engine, runtime, weights = predicate["engine"], predicate["runtime"], predicate["weights"]
    return {
        "name": predicate["name"],
        "release": predicate["release"],
        "task": predicate["task"],
        "model": predicate["model"],
        "quantization": weights["quantization"],
        "target": predicate["target"],
        "arch": predicate["arch"],
        "page": predicate["page_size"] >> 10,
        "engine": f"{engine['name']} {engine['version']}",
        "compiler": engine["compiler"],
        "source": engine["source_sha256"],
        "variants": ", ".join(built["name"] for built in engine["variants"]),
        "python": runtime["python"],
        "packages": len(runtime["packages"]),
        "wheels": len(predicate["wheels"]),
        "sampan": predicate["sampan"],
        "port": plan.get("port", "-"),
    }


def _licences(materials: bytes | None) -> str:
    """``MIT × 15, Apache-2.0 × 8``, most frequent first."""
    if materials is None:
        return "-"
    found: Counter[str] = Counter()
    for component in _components(json.loads(materials)):
        for one in component.get("licenses", ()):
            named = one.get("license", {})
            found[one.get("expression") or named.get("id") or named.get("name") or "-"] += 1
    ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} × {count}" for name, count in ordered)


def _components(part: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for component in part.get("components", ()):
        yield component
        yield from _components(component)


def _outcome(language: str, kind: str, summary: Mapping[str, Any]) -> str:
    """What audit or rehearsal came to, as their summaries in the manifest say."""
    checks = summary.get("checks", ())
    values = {
        "files": summary.get("files"),
        "errors": summary.get("errors"),
        "warnings": summary.get("warnings"),
        "cpu": summary.get("cpu_model"),
        "checks": len(checks),
        "passed": sum(bool(check["ok"]) for check in checks),
    }
    status = str(summary["status"]).replace(" ", "-")
    return i18n.text_in(language, f"approval.{kind}-{status}", **values)


def _hash_lines(hashed: Sequence[Digests]) -> Iterator[str]:
    for one in hashed:
        yield f"SHA-256  {one.sha256}  {one.path}"
        yield f"SM3      {one.sm3}  {one.path}" if one.sm3 else _both("approval.no-sm3")
