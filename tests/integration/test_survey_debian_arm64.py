"""The survey script in a real Debian 11 root for arm64 (dash, bash, BusyBox, GNU tools, glibc), on an emulated CPU.

What its block says is held against the direct survey, made by a bundle's own sampan in the same root on the same CPU.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from tests.fakes.surveys import enter, printed_block, through_web_terminals
from tests.integration.runtime_parts import need_chroot, or_skip
from tests.integration.survey_bundle import bundle

from sampan.edge.apt_settings import SUITE, debian_sources
from sampan.edge.progress import SilentProgress
from sampan.flow.tools import workshop_tools
from sampan.plan.variants import runnable
from sampan.runtime import debian
from sampan.runtime.index import newest, read_index
from sampan.spec import codec
from sampan.spec.debian import DebianSource
from sampan.spec.target import TargetProfile
from sampan.survey import pasted

pytestmark = pytest.mark.integration

# What three shells, the tools of the script and openssl need, and the libraries that the survey looks at.
PACKAGES = tuple(
    """
    base-files base-passwd bash busybox coreutils dash debianutils grep libacl1 libattr1 libc6 libgcc-s1 libgmp10
    libgomp1 libpcre2-8-0 libpcre3 libselinux1 libssl1.1 libstdc++6 libtinfo6 openssl sed tar
    """.split()  # noqa: SIM905  (a list of names, not of words in quotes)
)
SHELLS = {
    "dash": ("/bin/dash", "-s"),
    "bash": ("/bin/bash", "--posix", "-s"),
    "busybox": ("/bin/busybox", "sh", "-s"),
}
CPUS = {"cortex-a57": ("4096", "armv8.0"), "cortex-a76": ("65536", "armv8.2-dotprod-fp16")}


def bullseye() -> DebianSource:
    """The user's own mirror, for Debian 11."""
    main = next(source for source in or_skip(debian_sources) if source.suite == SUITE)
    return replace(main, suite="bullseye")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need_chroot("aarch64")
    if shutil.which("dpkg-deb") is None:
        pytest.skip("no dpkg-deb here")
    tools, folder, source = workshop_tools(SilentProgress()), tmp_path_factory.mktemp("debian"), bullseye()
    found = or_skip(lambda: read_index(source, "arm64", PACKAGES, fetcher=tools.fetcher, runner=tools.runner))
    best = newest(found)
    for package in (best[name] for name in PACKAGES):
        file = or_skip(partial(debian.fetch, package, sources=lambda: (source,), fetcher=tools.fetcher))
        tar = subprocess.run(["dpkg-deb", "--fsys-tarfile", file], capture_output=True, check=True)
        subprocess.run(["tar", "-x", "--keep-directory-symlink", "-C", folder], input=tar.stdout, check=True)
    shutil.copy2(folder / "usr/share/base-passwd/passwd.master", folder / "etc/passwd")
    shutil.copy2(folder / "usr/share/base-passwd/group.master", folder / "etc/group")
    for name in ("proc", "dev", "tmp"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "dev/null").touch()
    return folder


@pytest.fixture(scope="module")
def direct(root: Path) -> dict[str, TargetProfile]:
    """The direct survey on each CPU."""
    bundle(root / "b", "aarch64")
    env = {cpu: {"QEMU_CPU": cpu, "QEMU_PAGESIZE": page} for cpu, (page, _) in CPUS.items()}
    told = {cpu: enter(root, "/b/sampan", "survey", "--json", **env[cpu]) for cpu in CPUS}
    return {cpu: codec.from_json(TargetProfile, text, where="-") for cpu, text in told.items()}


def lasting(profile: TargetProfile) -> TargetProfile:
    disks = tuple(replace(disk, free_bytes=None) for disk in profile.disks)
    return replace(profile, moment=None, sources=(), name="", disks=disks)


@pytest.mark.parametrize(("shell", "cpu"), [("dash", "cortex-a57"), ("bash", "cortex-a76")])
def test_reading_it_back_equals_the_direct_survey(
    root: Path, direct: dict[str, TargetProfile], shell: str, cpu: str
) -> None:
    page, best = CPUS[cpu]
    output = enter(root, *SHELLS[shell], QEMU_CPU=cpu, QEMU_PAGESIZE=page)
    assert len(printed_block(output)) <= 2048
    profile = pasted.profile(output, name="far", where="-")
    for paste in through_web_terminals(output):
        assert pasted.profile(paste, name="far", where="-") == profile
    assert lasting(profile) == lasting(direct[cpu])
    assert (profile.arch, profile.os.id, profile.os.version) == ("aarch64", "debian", "11 (bullseye)")
    assert (profile.page_size, profile.tar, profile.libc.glibc) == (int(page), "GNU tar 1.34", "2.31")
    assert (profile.libc.glibcxx, profile.libc.cxxabi, profile.libc.gomp) == ("3.4.28", "1.3.12", "5.0")
    assert profile.openssl is not None
    assert profile.openssl.startswith("1.1.1")
    assert max(runnable("aarch64", profile.cpu.features), key=lambda variant: variant.rank).name == best


def test_busybox_of_that_system_says_the_same(root: Path, direct: dict[str, TargetProfile]) -> None:
    output = enter(root, *SHELLS["busybox"], QEMU_CPU="cortex-a57", QEMU_PAGESIZE="4096")
    profile = pasted.profile(output, name="far", where="-")
    assert replace(lasting(profile), tar=None) == replace(lasting(direct["cortex-a57"]), tar=None)
