"""What the gateway is tested with and this project does not depend on: clients from PyPI, Prometheus from Debian.

Both are made once in the store, beside what the product makes. The clients: by tests/clients.lock, each file by its
hash, in an environment of their own (0.3 GB). Prometheus: from its Debian package by the archive's signed index,
unpacked and not installed (0.1 GB). Two test runs that want the same wait for one another. Only where the registry
is out of reach is a test skipped.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from tests.integration.runtime_parts import HERE, or_skip

from sampan.edge.apt_settings import debian_sources
from sampan.edge.progress import SilentProgress
from sampan.edge.store import DiskStore
from sampan.flow.tools import workshop_tools
from sampan.runtime import deb, debian

LOCK = Path(__file__).parents[1] / "clients.lock"
#: what pip says where no index answers, and not where an index answers with something else than the lock wants
_UNREACHED = ("NewConnectionError", "ConnectTimeout", "ReadTimeout", "ProxyError", "(from versions: none)")


class UnreachedError(Exception):
    """The package index does not answer, or has nothing."""


@cache
def clients() -> Path:
    """The environment's Python: what has a program of its own is run by ``-m``. Skips where no index is reached."""
    try:
        return DiskStore().get_or_make("test-clients", _key(), _make) / "bin" / "python"
    except UnreachedError as error:
        pytest.skip(f"the package index cannot be reached, so no clients: {error}")


def run_client(words: Sequence[str | Path], *, cwd: Path, timeout: float) -> subprocess.CompletedProcess[str]:
    """Run the environment's Python. What it compiles is kept elsewhere: nobody writes into a made folder."""
    kept = DiskStore().scratch("test-clients", _key())
    env = {**os.environ, "PYTHONPYCACHEPREFIX": str(kept), "LANGSMITH_TRACING": "false", "NO_COLOR": "1"}
    for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE"):
        env.pop(name, None)
    argv = [str(word) for word in (clients(), *words)]
    return subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=timeout)


def _key() -> dict[str, object]:
    lock = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    return {"lock": lock, "python": platform.python_version(), "base": sys.base_prefix, "machine": HERE}


def _make(folder: Path) -> None:
    """pip and not uv, since pip reads the user's own settings. Raises UnreachedError, AssertionError."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    words = [folder / "bin" / "python", "-m", "pip", "install", "--no-input", "--no-compile", "--no-deps"]
    words += ["--only-binary", ":all:", "--require-hashes", "--requirement", LOCK]
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return
    told = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["?"]
    if any(sign in done.stderr for sign in _UNREACHED):
        raise UnreachedError(told[0][:200])
    raise AssertionError(done.stderr[-2000:])


@cache
def prometheus(name: str) -> str:
    """``prometheus`` or ``promtool``: the machine's own, else out of Debian's package."""
    return shutil.which(name) or str(or_skip(_unpacked) / name)


def _unpacked() -> Path:
    """Raises NetworkError or MissingToolError where the user's mirror is out of reach, or there is none."""
    tools = workshop_tools(SilentProgress())
    package = debian.fetch_package(
        "prometheus",
        HERE,
        sources=debian_sources,
        fetcher=tools.fetcher,
        runner=tools.runner,
        store=tools.store,
        progress=tools.progress,
    )

    def make(folder: Path) -> None:
        with deb.opened(package) as inside:
            for program in ("prometheus", "promtool"):
                (folder / program).write_bytes(inside.read(f"usr/bin/{program}"))
                (folder / program).chmod(0o755)

    return tools.store.get_or_make("test-prometheus", {"package": package.name}, make)
