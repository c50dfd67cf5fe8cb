"""A sealed bundle of the service ``mini``: real scripts, this environment's own sampan, and Perl for an engine."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from dataclasses import replace
from importlib import resources
from pathlib import Path

from tests.unit.install.conftest import make_bundle, make_plan, seal

from sampan.bundle import manifest
from sampan.bundle.pack import pack
from sampan.spec import codec
from sampan.spec.weights import GoldenEmbedding, GoldenSet

SCRIPTS = Path(str(resources.files("sampan"))) / "data/target"
SERVER = Path(__file__).parents[1] / "e2e/fake_serve.pl"
HERE = f"{sys.executable} -m sampan"
LAUNCHER = """#!/bin/sh
SAMPAN_BUNDLE=$(CDPATH='' cd -P "${{0%/*}}" && pwd)
export SAMPAN_BUNDLE
case ${{1-}} in
    --version) echo "sampan miniature" ;;
    serve) [ -n "${{RUNTIME_DIRECTORY-}}" ] || RUNTIME_DIRECTORY=$(mktemp -d)
        export RUNTIME_DIRECTORY
        exec perl "$SAMPAN_BUNDLE/app/serve.pl" "$@" ;;
    *) exec {python} "$@" ;;
esac
"""


def miniature(folder: Path, release: int = 1, *marks: str, python: str = HERE) -> Path:
    """A sealed bundle. ``marks``: broken (dies at once) or wrong (answers wrongly); ``python`` runs sampan."""
    variants = (replace(make_plan().variants[0], requires=()),)
    plan = replace(make_plan(release=release), variants=variants)
    bundle = make_bundle(folder, plan, LAUNCHER.format(python=python))
    golden = GoldenSet("mini-model", "by hand", embeddings=(GoldenEmbedding("hello", (1.0, 0.0)),))
    (bundle / "weights/golden.json").write_text(codec.to_json(golden))
    (bundle / "app").mkdir()
    shutil.copy(SERVER, bundle / "app/serve.pl")
    for mark in marks:
        (bundle / "app" / mark).write_text("")
    for name in ("install.sh", "start.sh", "README.txt"):
        shutil.copy(SCRIPTS / name, bundle / name)
    return sealed(bundle, release)


def sealed(bundle: Path, release: int) -> Path:
    """With a manifest of all files, and one mode for all that are no programs."""
    files = sorted(path for path in bundle.rglob("*") if path.is_file() and path.name != "SHA256SUMS")
    programs = [str(path.relative_to(bundle)) for path in files if path.stat().st_mode & 0o100]
    for path in (bundle, *bundle.rglob("*")):
        path.chmod(0o755 if path.is_dir() or str(path.relative_to(bundle)) in programs else 0o644)
    subject = [
        {"name": str(path.relative_to(bundle)), "digest": {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}}
        for path in files
    ]
    statement = {
        "_type": manifest.STATEMENT_TYPE,
        "predicateType": manifest.PREDICATE_TYPE,
        "predicate": {"name": "mini", "release": release, "programs": programs},
        "subject": subject,
    }
    (bundle / "manifest.json").write_text(json.dumps(statement))
    (bundle / "manifest.json").chmod(0o644)
    return seal(bundle)


def packed(bundle: Path, out: Path) -> Path:
    """Its tar."""
    out.mkdir(parents=True, exist_ok=True)
    return Path(pack(bundle, out).path)
