"""The survey script in a real Debian root for arm64 (dash, GNU tools, glibc), on an emulated CPU."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.fakes.surveys import enter, printed_block

from sampan.edge.apt_settings import debian_sources
from sampan.edge.progress import SilentProgress
from sampan.errors import NetworkError
from sampan.flow.tools import workshop_tools
from sampan.runtime import debian
from sampan.survey import pasted
from sampan.survey.machine import survey_this

pytestmark = pytest.mark.integration

# What `sh`, coreutils, sed, grep and tar need, and the libraries that the survey looks at.
PACKAGES = (
    "dash coreutils sed grep tar base-files libc6 libstdc++6 libgomp1 libgcc-s1 libacl1 libattr1 libgmp10 "
    "libselinux1 libpcre2-8-0"
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("dpkg-deb") is None:
        pytest.skip("no dpkg-deb here")
    tools, folder = workshop_tools(SilentProgress()), tmp_path_factory.mktemp("debian")
    for name in ("bin", "sbin", "lib"):  # /usr is merged
        (folder / "usr" / name).mkdir(parents=True)
        (folder / name).symlink_to(f"usr/{name}")
    for name in PACKAGES.split():
        try:
            package = debian.fetch_package(
                name,
                "aarch64",
                sources=debian_sources,
                fetcher=tools.fetcher,
                runner=tools.runner,
                store=tools.store,
                progress=tools.progress,
            )
        except NetworkError as error:
            pytest.skip(f"no package mirror: {error}")
        tar = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], capture_output=True, check=True)
        subprocess.run(["tar", "-x", "--keep-directory-symlink", "-C", folder], input=tar.stdout, check=True)
    for name in ("proc", "dev", "tmp"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "dev/null").touch()
    return folder


def test_a_debian_root_on_an_emulated_cpu(root: Path) -> None:
    output = enter(root, QEMU_CPU="cortex-a57")
    assert len(printed_block(output)) <= 2048
    profile, direct = pasted.profile(output, name="this", where="-"), survey_this(root)
    assert (profile.arch, profile.os.id, profile.tar is not None) == ("aarch64", "debian", True)
    assert (profile.libc, profile.os.version) == (direct.libc, direct.os.version)
    assert None not in (profile.libc.glibc, profile.libc.glibcxx, profile.libc.cxxabi, profile.libc.gomp)
    assert {"asimd", "fp"} <= set(profile.cpu.features)
    assert "atomics" not in profile.cpu.features
