"""A whole set of small parts for a bundle, made of real files."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from tests.fakes.models import MINILM

from sampan.bundle.parts import BundleParts
from sampan.spec.artefacts import (
    EngineBuild,
    EngineVariant,
    Rehearsal,
    RuntimePackage,
    RuntimeTree,
    Wheel,
    Wheelhouse,
)
from sampan.spec.plan import EngineSettings, Plan, Variant
from sampan.spec.target import CpuFacts, OsFacts, TargetProfile
from sampan.spec.weights import WeightsInfo

PASSED = Rehearsal(status="passed", why=None, cpu_model="cortex-a76", page_size=65536, emulated=True)


def put(path: Path, data: bytes, mode: int = 0o644) -> Path:
    """Write a file and its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)
    return path


def make_plan(name: str = "mini") -> Plan:
    """A plan with one variant."""
    return Plan(
        name=name,
        release=3,
        target="kylin",
        arch="aarch64",
        page_size=65536,
        engine="llama.cpp",
        variants=(Variant("armv8.0", "aarch64", 0, ("fp",), "generic"),),
        task="embedding",
        model="mini",
        quantization="Q8_0",
        settings=EngineSettings(512, 512, 512, 1, True, 4, True),
        memory=(),
        memory_total_bytes=0,
        memory_available_bytes=None,
    )


def make_parts(folder: Path) -> BundleParts:
    """Every part, as files under ``folder``."""
    engine = put(folder / "store/engine/llama-server", b"\x7fELF engine", 0o755)
    gguf = put(folder / "store/weights/mini.gguf", b"GGUF" + bytes(range(256)) * 40)
    golden = put(folder / "store/weights/golden.json", b"{}\n")
    put(folder / "store/engine/LICENSE", b"MIT\n")
    put(folder / "store/runtime/lib/sys/libc.so.6", b"\x7fELF libc", 0o755)
    (folder / "store/runtime/lib/sys/libm.so.6").symlink_to("libc.so.6")
    (folder / "store/runtime/empty").mkdir()
    put(folder / "store/app/sampan/__init__.py", b"")
    put(folder / "store/app/中文.txt", "文\n".encode(), 0o600)
    launcher = put(folder / "store/launcher", b"\x7fELF launcher", 0o700)
    for name in ("install.sh", "start.sh", "README.txt"):
        put(folder / "scripts" / name, b"#!/bin/sh\n")
    variant = EngineVariant("armv8.0", str(engine), hashlib.sha256(engine.read_bytes()).hexdigest(), 11)
    unused = EngineVariant("armv8.2-dotprod", str(engine), "0" * 64, 11)
    return BundleParts(
        plan=make_plan(),
        profile=TargetProfile("kylin", "aarch64", OsFacts("kylin", "Kylin"), CpuFacts("any"), 65536),
        weights=make_weights(gguf, golden),
        engine=EngineBuild(
            "llama.cpp",
            "b1",
            "1" * 64,
            "zig 0.17",
            "aarch64",
            (variant, unused),
            (str(folder / "store/engine/LICENSE"),),
        ),
        runtime=RuntimeTree(
            "aarch64",
            str(folder / "store/runtime"),
            "3.11.2",
            "2.36",
            "3.4.30",
            (RuntimePackage("libc6", "2.36-9", "arm64", "2" * 64),),
        ),
        wheelhouse=Wheelhouse(
            "aarch64", "3.11", str(folder / "store/app"), (Wheel("orjson", "3.10", "orjson.whl", "3" * 64, "MIT"),)
        ),
        launcher=launcher,
        scripts=folder / "scripts",
    )


def make_weights(gguf: Path, golden: Path) -> WeightsInfo:
    """What the header of a small model would say."""
    return replace(
        MINILM,
        name="mini",
        source="/home/somebody/models/mini-folder",
        origin="gguf",
        path=str(gguf),
        golden_path=str(golden),
        file_name="mini.gguf",
        sha256=hashlib.sha256(gguf.read_bytes()).hexdigest(),
        size_bytes=gguf.stat().st_size,
        quantization="Q8_0",
    )
