"""What the runtime's tests share: a runner whose gpgv believes, a fetcher that reads files, a store."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sampan.edge.net import NetFetcher
from sampan.edge.pip_settings import IndexSettings
from sampan.edge.progress import SilentProgress
from sampan.edge.store import DiskStore
from sampan.runtime import index
from sampan.spec.ports import Completed


@dataclass
class FakeRunner:
    """gpgv prints ``status`` and hands on the text; every other program succeeds. ``calls`` are the argvs."""

    status: str = "[GNUPG:] GOODSIG F8D2 Debian\n"
    returncode: int = 0
    calls: list[tuple[str, ...]] = field(default_factory=list)

    def run(self, argv: Sequence[str], **_: object) -> Completed:
        """See ports.Runner."""
        self.calls.append(tuple(argv))
        if argv[0] != "gpgv":
            return Completed(tuple(argv), self.returncode, "")
        shutil.copyfile(argv[-1], argv[argv.index("--output") + 1])
        return Completed(tuple(argv), 2, self.status)


@pytest.fixture
def runner() -> FakeRunner:
    return FakeRunner()


@pytest.fixture
def store(tmp_path: Path) -> DiskStore:
    return DiskStore(tmp_path / "store")


@pytest.fixture
def fetcher(store: DiskStore) -> NetFetcher:
    return NetFetcher(store, SilentProgress(), settings=IndexSettings(), pause=0.001)


@pytest.fixture(autouse=True)
def keyring(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A keyring that exists, whatever this machine has."""
    ring = tmp_path_factory.mktemp("keys") / "ring.gpg"
    ring.write_bytes(b"")
    monkeypatch.setattr(index, "_keyrings", lambda _source: (str(ring),))
    return ring


def compiled_module() -> Path:
    """A real shared library of this environment."""
    spec = importlib.util.find_spec("orjson.orjson")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin)
