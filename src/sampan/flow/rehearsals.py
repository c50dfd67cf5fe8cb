"""The rehearsal and its cache: what passed once passes again, byte for byte the same bundle for the same target."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import replace
from pathlib import Path

from sampan.disk import filesystem_errors
from sampan.edge.files import write_atomically
from sampan.flow.tools import Tools
from sampan.spec import codec
from sampan.spec.artefacts import Rehearsal
from sampan.spec.plan import Plan
from sampan.spec.target import TargetProfile

_STAGE, _FILE = "rehearsal", "rehearsal.json"


def rehearse_cached(folder: Path, profile: TargetProfile, plan: Plan, tools: Tools) -> Rehearsal:
    """Run it, or give the kept result of the same bundle. Only a passed rehearsal is kept.

    The bundle carries sampan itself, so its digest also stands for the code that rehearses.
    """
    from sampan.bundle.sums import content_digest

    digest = content_digest(folder)
    key = {"bundle": digest, "profile": hashlib.sha256(codec.to_json(profile).encode()).hexdigest()}
    kept = tools.store.find(_STAGE, key)
    if kept is not None:
        return codec.load(Rehearsal, kept / _FILE)
    rehearsal = run(folder, profile, plan, tools)
    if rehearsal.status == "passed":
        text = codec.to_json(rehearsal).encode()
        tools.store.get_or_make(_STAGE, key, lambda made: write_atomically(made / _FILE, text))
    return rehearsal


def of_path(path: Path, target: str | None, tools: Tools) -> Rehearsal:
    """Rehearse a bundle's folder or tar for its own target or another. Raises BadInputError, UsageError."""
    from sampan.bundle.unpack import unpack
    from sampan.survey.resolve import resolve

    if path.is_dir():
        folder = path
        profile = resolve(target) if target else codec.load(TargetProfile, folder / "profile.json")
        return run(folder, profile, codec.load(Plan, folder / "plan.json"), tools)
    with tempfile.TemporaryDirectory(prefix="sampan-") as scratch:
        return of_path(unpack(path, Path(scratch)), target, tools)


def run(folder: Path, profile: TargetProfile, plan: Plan, tools: Tools) -> Rehearsal:
    """Rehearse for real, in a temporary folder of the cache's disk."""
    from sampan.bundle.sums import content_digest
    from sampan.rehearse.rehearse import rehearse

    work = tools.store.root / "rehearsing"
    with filesystem_errors(work):
        work.mkdir(parents=True, exist_ok=True)
    rehearsal = rehearse(
        folder,
        profile,
        plan,
        busybox=busybox(profile.arch, tools),
        runner=tools.runner,
        progress=tools.progress,
        work=work,
    )
    return replace(rehearsal, bundle_digest=content_digest(folder))


def busybox(arch: str, tools: Tools) -> Path:
    """The static BusyBox that stands in for the target's shell and coreutils, from Debian's package."""
    from sampan.edge.apt_settings import debian_sources
    from sampan.runtime import deb, debian

    package = debian.fetch_package(
        "busybox-static",
        arch,
        sources=debian_sources,
        fetcher=tools.fetcher,
        runner=tools.runner,
        store=tools.store,
        progress=tools.progress,
    )

    def extract(folder: Path) -> None:
        program = folder / "busybox"
        with deb.opened(package) as contents:
            program.write_bytes(contents.read("bin/busybox"))
        program.chmod(0o755)

    return tools.store.get_or_make("busybox", {"deb": package.parent.name}, extract) / "busybox"
