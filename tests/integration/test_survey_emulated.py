"""The survey script on an emulated arm64 CPU, in a root that holds nothing but a static BusyBox."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.fakes.surveys import enter, printed_block, through_web_terminals

from sampan.edge.progress import SilentProgress
from sampan.errors import NetworkError
from sampan.flow import rehearsals
from sampan.flow.tools import workshop_tools
from sampan.plan.variants import runnable
from sampan.survey import pasted

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def empty_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        program = rehearsals.busybox("aarch64", workshop_tools(SilentProgress()))
    except NetworkError as error:
        pytest.skip(f"no package mirror: {error}")
    root = tmp_path_factory.mktemp("root")
    for folder in ("bin", "proc", "dev"):
        (root / folder).mkdir()
    (root / "bin/busybox").write_bytes(program.read_bytes())
    (root / "bin/busybox").chmod(0o755)
    (root / "dev/null").touch()
    try:
        listed = subprocess.run([root / "bin/busybox", "--list"], capture_output=True, text=True, check=True)
    except OSError as error:
        pytest.skip(f"arm64 programs cannot be run here: {error}")
    for applet in listed.stdout.split():
        (root / "bin" / applet).symlink_to("busybox") if applet != "busybox" else None
    return root


@pytest.mark.parametrize(
    ("cpu", "page", "best"),
    [("cortex-a57", "4096", "armv8.0"), ("cortex-a76", "65536", "armv8.2-dotprod-fp16")],
)
def test_an_emulated_cpu_in_an_almost_empty_root(empty_root: Path, cpu: str, page: str, best: str) -> None:
    before = sorted(str(path) for path in empty_root.rglob("*"))
    output = enter(empty_root, QEMU_CPU=cpu, QEMU_PAGESIZE=page)
    assert sorted(str(path) for path in empty_root.rglob("*")) == before
    assert len(printed_block(output)) <= 2048
    profile = pasted.profile(output, name="far", where="-")
    for paste in through_web_terminals(output):
        assert pasted.profile(paste, name="far", where="-") == profile
    assert (profile.arch, profile.page_size) == ("aarch64", int(page))
    assert max(runnable("aarch64", profile.cpu.features), key=lambda variant: variant.rank).name == best
    assert (profile.libc.glibc, profile.python, profile.systemd) == (None, None, None)
    assert "unknown 未知" in output
