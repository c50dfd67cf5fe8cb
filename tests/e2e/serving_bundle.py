"""A sealed bundle of the service ``mini`` whose gateway is the real one, over the fake engine."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from tests.e2e import host_python
from tests.fakes.engine import DIMENSIONS, vector_of
from tests.fakes.miniature import SCRIPTS, sealed
from tests.fakes.models import MINILM
from tests.unit.install.conftest import make_bundle, make_plan

from sampan.spec import codec
from sampan.spec.weights import GoldenEmbedding, GoldenSet, WeightsInfo

LAUNCHER = """#!/bin/sh
SAMPAN_BUNDLE=$(CDPATH='' cd -P "${{0%/*}}" && pwd)
export SAMPAN_BUNDLE
[ "${{1-}}" != --version ] || {{ echo "sampan miniature"; exit 0; }}
exec {python} "$@"
"""
ENGINE = '#!/bin/sh\nexec {python} "$@"\n'


def serving_bundle(folder: Path, release: int, *, memory: int = 300, mark: str = "") -> Path:
    """``memory``: the plan's, in MiB. ``mark``: wrong (golden answers that the engine does not give)."""
    variants = (replace(make_plan().variants[0], requires=()),)
    plan = replace(make_plan(release=release), variants=variants, memory_total_bytes=memory << 20)
    bundle = make_bundle(folder, plan, LAUNCHER.format(python=host_python.command()))
    (bundle / "weights/weights.json").write_text(codec.to_json(_weights(bundle)))
    golden = vector_of("hello" if mark != "wrong" else "another")
    texts = (GoldenEmbedding("hello", tuple(golden)),)
    (bundle / "weights/golden.json").write_text(codec.to_json(GoldenSet("mini-model", "by hand", embeddings=texts)))
    engine = bundle / "engine/llama.cpp/any/llama-server"
    engine.parent.mkdir(parents=True)
    engine.write_text(ENGINE.format(python=host_python.command("tests.fakes.engine")))
    engine.chmod(0o755)
    known = bundle / "app/sampan/gateway/handover.py"  # what says that the release can follow a running one
    known.parent.mkdir(parents=True)
    known.write_text("")
    for name in ("install.sh", "start.sh", "README.txt"):
        shutil.copy(SCRIPTS / name, bundle / name)
    return sealed(bundle, release)


def _weights(bundle: Path) -> WeightsInfo:
    path = bundle / "weights/tiny model.gguf"
    return replace(
        MINILM,
        name="mini-model",
        path=str(path.relative_to(bundle)),
        file_name=path.name,
        size_bytes=path.stat().st_size,
        embedding_length=DIMENSIONS,
    )
