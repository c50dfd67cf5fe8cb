"""A Debian 11 for arm64 with kernel, systemd and OpenSSH, and a disk made of it.

The tree is made once by debootstrap, from the mirror in this machine's own apt settings; its second half runs through
qemu-user. It is kept in sampan's cache beside the key that may log in. Each run has a disk of its own.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.systemd_container import mirrors

from sampan.edge.store import default_root

SUITE = "bullseye"
PACKAGES = "systemd,systemd-sysv,dbus,openssl,openssh-server,iproute2,linux-image-arm64"
_FORM = 1  # counts up when what is put into the tree changes
_TOOLS = {
    "debootstrap": "debootstrap",
    "qemu-system-aarch64": "qemu-system-arm",
    "qemu-aarch64-static": "qemu-user-static",
    "mke2fs": "e2fsprogs",
    "e2fsck": "e2fsprogs",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
}
#: the few drivers that lead to the root file system; the others are loaded from it
_EARLY = "virtio_pci\nvirtio_blk\next4\n"
_NETWORK = "[Match]\nName=en* eth*\n\n[Network]\nAddress=10.0.2.15/24\n"


@dataclass(frozen=True)
class DebianRoot:
    """``tree`` is the root file system, ``key`` the private key whose owner is root there."""

    tree: Path
    key: Path

    @property
    def kernel(self) -> Path:
        """What the machine boots."""
        return next((self.tree / "boot").glob("vmlinuz-*"))

    @property
    def initrd(self) -> Path:
        """What finds the disk."""
        return next((self.tree / "boot").glob("initrd.img-*"))

    @property
    def host_key(self) -> Path:
        """The public key that its sshd shows."""
        return self.tree / "etc/ssh/ssh_host_ed25519_key.pub"

    def disk(self, path: Path, size: str) -> None:
        """An ext4 disk with the tree on it."""
        run("mke2fs", "-q", "-t", "ext4", "-L", "root", "-d", str(self.tree), str(path), size)


def missing() -> str | None:
    """Why no such machine can be made here; None where it can."""
    if os.geteuid() != 0:
        return "needs root, for the owners of a system's files"
    packages = {package for tool, package in _TOOLS.items() if shutil.which(tool) is None}
    if packages:
        return f"needs the Debian packages {', '.join(sorted(packages))}"
    if not Path("/proc/sys/fs/binfmt_misc/qemu-aarch64").exists():
        return "needs binfmt_misc with aarch64 (package binfmt-support or systemd-binfmt)"
    return None


def place() -> Path:
    """Where it is kept: ``root`` and ``key``."""
    return default_root() / "test-trees" / f"{SUITE}-arm64-boot{_FORM}"


def ready(say: Callable[[str], None]) -> DebianRoot:
    """The root, made where it is not there yet."""
    final = place()
    final.parent.mkdir(parents=True, exist_ok=True)
    root = DebianRoot(final / "root", final / "key")
    with final.with_name(f"{final.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not final.is_dir():
            say(f"making a Debian root ({SUITE}, arm64) by debootstrap; this is done once and takes minutes")
            fresh = final.with_name(f"{final.name}.new")
            _unmount(fresh / "root")  # where an earlier run was killed
            shutil.rmtree(fresh, ignore_errors=True)
            _make(fresh / "root", fresh / "key")
            fresh.rename(final)
    return root


def _make(tree: Path, key: Path) -> None:
    tree.mkdir(parents=True)
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "boot-test", "-f", str(key))
    first = ["debootstrap", "--foreign", "--arch=arm64", "--variant=minbase", f"--include={PACKAGES}", SUITE]
    run(*first, str(tree), mirrors()[0])
    _write(tree, "etc/initramfs-tools/conf.d/few", "MODULES=list\n")
    _write(tree, "usr/share/initramfs-tools/modules.d/disk", _EARLY)
    try:
        run("chroot", str(tree), "/debootstrap/debootstrap", "--second-stage")
    finally:
        _unmount(tree)
    _settle(tree, key.with_name("key.pub").read_text())


def _unmount(tree: Path) -> None:
    """What debootstrap mounts, so that it can run the packages' scripts."""
    for place in ("proc", "sys"):
        subprocess.run(["umount", "-q", str(tree / place)], check=False, capture_output=True)


def _settle(tree: Path, public: str) -> None:
    """What an installer would have asked for."""
    _write(tree, "root/.ssh/authorized_keys", public, mode=0o600)
    _write(tree, "etc/hostname", "kunpeng\n")
    _write(tree, "etc/hosts", "127.0.0.1 localhost kunpeng\n")
    _write(tree, "etc/fstab", "/dev/vda / ext4 defaults 0 1\n")
    _write(tree, "etc/systemd/network/all.network", _NETWORK)
    run("chroot", str(tree), "systemctl", "enable", "systemd-networkd.service", "ssh.service")
    for timer in ("apt-daily", "apt-daily-upgrade", "e2scrub_all", "fstrim", "man-db", "logrotate"):
        (tree / f"etc/systemd/system/timers.target.wants/{timer}.timer").unlink(missing_ok=True)
    shutil.rmtree(tree / "var/cache/apt", ignore_errors=True)
    shutil.rmtree(tree / "var/lib/apt/lists", ignore_errors=True)
    (tree / "etc/machine-id").write_text("")  # the first boot makes one


def _write(tree: Path, name: str, text: str, mode: int = 0o644) -> None:
    path = tree / name
    path.parent.mkdir(mode=0o700 if path.parent.name == ".ssh" else 0o755, parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def run(*words: str) -> str:
    """A command that must go well, and what it printed."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{words[0]} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout
