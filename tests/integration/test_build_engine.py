"""The real engine's executables, where this machine has built them: what they are and on which CPUs they run."""

from __future__ import annotations

import http.client
import json
import os
import platform
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.fakes.tiny_models import llama_gguf

from sampan.build import flags
from sampan.build.check import faults
from sampan.build.pins import engine_pin
from sampan.build.toolchain import find_compiler
from sampan.edge.store import DiskStore
from sampan.plan.variants import all_variants
from sampan.spec.plan import Variant
from sampan.survey.features import current

pytestmark = pytest.mark.integration

VARIANTS = {variant.name: variant for variant in all_variants()}
QEMU = Path("/proc/sys/fs/binfmt_misc/qemu-aarch64")
START_SECONDS = 120.0


def _built(name: str) -> Path:
    """The executable from the store; a test cannot spend minutes on building it."""
    pin, variant = engine_pin(), VARIANTS[name]
    key = flags.variant_key(flags.tree_key(pin, find_compiler(), pin.architecture(variant.arch)), variant)
    folder = DiskStore().find("engine", key)
    if folder is None:
        pytest.skip(f"{name} is not built on this machine yet; `./run demo` or `sampan build` makes it")
    return folder / pin.target


def _surroundings(variant: Variant, cpu: str) -> Mapping[str, str]:
    if variant.arch == platform.machine():
        if set(variant.requires) - current(Path("/")):
            pytest.skip(f"this machine's CPU cannot run {variant.name}")
        return {}
    if variant.arch != "aarch64" or not QEMU.exists():
        pytest.skip(f"{variant.arch} can neither run here nor be emulated (binfmt_misc has no qemu-aarch64)")
    return {"QEMU_CPU": cpu, "QEMU_PAGESIZE": "65536", "QEMU_RESERVED_VA": "0x4000000000"}


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=START_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


@dataclass(frozen=True)
class Served:
    """One running llama-server."""

    process: subprocess.Popen[bytes]
    path: Path

    def ask(self, route: str, body: object = None) -> tuple[int, dict[str, object]]:
        """The status and the decoded answer."""
        connection = _UnixConnection(self.path)
        try:
            connection.request("POST" if body else "GET", route, json.dumps(body) if body else None)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def wait(self) -> int | None:
        """None when it is ready, its exit code where it ended before."""
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            try:
                if self.ask("/health")[0] == 200:
                    return None
            except OSError:
                time.sleep(0.1)
        return self.process.wait(1)


@contextmanager
def _served(executable: Path, model: Path, env: Mapping[str, str], *words: str) -> Iterator[Served]:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own paths are too long for a socket
        path = Path(folder) / "s.sock"
        argv = [str(executable), "-m", str(model), "--host", str(path), "-c", "64", "-t", "1", *words]
        with subprocess.Popen(
            argv, env={**os.environ, **env}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            try:
                yield Served(process, path)
            finally:
                process.terminate()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A decoder of 32 dimensions with random weights."""
    return llama_gguf(tmp_path_factory.mktemp("model") / "tiny.gguf")


@pytest.mark.parametrize("name", VARIANTS)
def test_it_needs_a_kernel_and_nothing_else(name: str) -> None:
    assert faults(_built(name), VARIANTS[name].arch, max_bytes=15 << 20) == []


@pytest.mark.parametrize("name", VARIANTS)
def test_nothing_of_the_building_machine_is_in_it(name: str) -> None:
    data = _built(name).read_bytes()
    for trace in (str(DiskStore().root), str(Path.home()) + "/", str(find_compiler().folder), platform.node() + "."):
        assert trace.encode() not in data, trace


@pytest.mark.parametrize(
    ("name", "cpu"),
    [
        ("armv8.0", "cortex-a57"),
        ("armv8.0", "cortex-a76"),
        ("armv8.2-dotprod", "cortex-a76"),
        ("armv8.2-dotprod-fp16", "neoverse-n1"),
        ("x86-64-v2", ""),
        ("x86-64-v3", ""),
        ("x86-64-v4", ""),
    ],
)
def test_it_serves_on_a_unix_socket_on_a_cpu_of_its_class(name: str, cpu: str, model: Path) -> None:
    executable, env = _built(name), _surroundings(VARIANTS[name], cpu)
    with _served(executable, model, env, "--embeddings", "--pooling", "mean") as served:
        assert served.wait() is None
        status, answer = served.ask("/v1/embeddings", {"input": ["boat", "cargo"]})
        assert status == 200
        data = answer["data"]
        assert isinstance(data, list)
        assert [len(item["embedding"]) for item in data] == [32, 32]
    with _served(executable, model, env) as served:
        assert served.wait() is None
        question = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}
        status, answer = served.ask("/v1/chat/completions", question)
        assert status == 200
        assert answer["usage"]["completion_tokens"] in range(1, 5)  # type: ignore[index]


@pytest.mark.parametrize("name", ["armv8.2-dotprod", "armv8.2-dotprod-fp16"])
def test_on_a_lesser_cpu_it_dies_of_an_illegal_instruction(name: str, model: Path) -> None:
    """So the choice of the variant matters, and emulating the target's class of CPU shows a wrong one."""
    env = _surroundings(VARIANTS[name], "cortex-a57")
    if not env:
        pytest.skip("needs an emulated CPU; this machine is itself aarch64")
    with _served(_built(name), model, env) as served:
        assert served.wait() in (-signal.SIGILL, 128 + signal.SIGILL)
