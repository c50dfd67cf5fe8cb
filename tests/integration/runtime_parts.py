"""Real runtimes and applications for the integration tests, their downloads shared with the user's cache."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import pytest

from sampan.edge.apt_settings import debian_sources
from sampan.edge.net import NetFetcher
from sampan.edge.process import ProcessRunner
from sampan.edge.progress import SilentProgress
from sampan.edge.store import DiskStore, default_root
from sampan.errors import MissingToolError, NetworkError
from sampan.runtime import tree
from sampan.spec.artefacts import RuntimeTree, Wheelhouse
from sampan.spec.layout import python_command
from sampan.wheelhouse import make as wheelhouse

HERE = platform.machine()
T = TypeVar("T")


def or_skip(make: Callable[[], T]) -> T:
    """What ``make`` gives; a machine without network, mirror or tool skips with that reason."""
    try:
        return make()
    except (NetworkError, MissingToolError) as error:
        pytest.skip(str(error))


@dataclass
class Parts:
    """Everything below ``root``."""

    root: Path
    progress: SilentProgress = field(default_factory=SilentProgress)
    runner: ProcessRunner = field(default_factory=ProcessRunner)

    @cached_property
    def store(self) -> DiskStore:
        """A store of its own whose downloads are the user's."""
        shared = default_root() / "downloads"
        shared.mkdir(parents=True, exist_ok=True)
        self.root.mkdir(parents=True, exist_ok=True)
        (self.root / "downloads").symlink_to(shared)
        return DiskStore(self.root)

    @cached_property
    def fetcher(self) -> NetFetcher:
        """Over the user's own index."""
        return NetFetcher(self.store, self.progress)

    def runtime(self, arch: str) -> RuntimeTree:
        """The tree, with a stand-in for the launcher: it is started through its loader."""
        host = None if arch == HERE else self.runtime(HERE)
        stub = self.root / "launcher"
        stub.parent.mkdir(parents=True, exist_ok=True)
        stub.write_bytes(b"stub")
        return or_skip(
            lambda: tree.make(
                arch,
                launcher=stub,
                runner=self.runner,
                fetcher=self.fetcher,
                store=self.store,
                progress=self.progress,
                sources=debian_sources,
                host=host,
            )
        )

    def app(self, arch: str) -> Wheelhouse:
        """The application's folder for that runtime."""
        target, host = self.runtime(arch), self.runtime(HERE)
        return or_skip(
            lambda: wheelhouse.make(
                target, host, runner=self.runner, fetcher=self.fetcher, store=self.store, progress=self.progress
            )
        )


def need_chroot(arch: str) -> None:
    """Skip where this process may not chroot or cannot run that architecture there."""
    if os.geteuid() != 0:
        pytest.skip("chroot needs root")
    if arch == HERE:
        return
    entry = Path(f"/proc/sys/fs/binfmt_misc/qemu-{arch}")
    if not entry.exists() or "F" not in entry.read_text().partition("flags: ")[2].split("\n")[0]:
        pytest.skip(f"qemu-user for {arch} is not registered in binfmt_misc with flag F (package qemu-user-static)")


def bundle_root(root: Path, runtime: RuntimeTree, app: Wheelhouse | None = None) -> Path:
    """An empty root folder but for ``/b/runtime`` and ``/b/app``."""
    shutil.copytree(runtime.path, root / "b" / "runtime")
    if app:
        shutil.copytree(app.path, root / "b" / "app")
    for name in ("proc", "dev", "tmp"):
        (root / name).mkdir()
    return root


def run_in(root: Path, version: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the private Python inside ``root``: on the oldest CPU class and the largest pages where emulated."""
    argv = ["chroot", str(root), *python_command("/b/runtime", version), *words]
    env = {"PATH": os.environ["PATH"], "QEMU_CPU": "cortex-a57", "QEMU_PAGESIZE": "65536"}
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120, check=False)
