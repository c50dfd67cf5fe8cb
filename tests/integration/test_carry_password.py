"""Logging in with a password: a real OpenSSH server whose one user exists for that server alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.fakes import ssh_server
from tests.fakes.ssh_server import Server, running

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a server accounts of its own"),
]
USER, NUMBER, PASSWORD = "porter", 61234, "käse & brot 密码"
#: how servers ask: the plain method, and PAM's questions (many machines of banks and the like allow only these)
KINDS = {
    "password": "-o PasswordAuthentication=yes",
    "questions": "-o UsePAM=yes -o KbdInteractiveAuthentication=yes",
}
#: the mounts are seen by this server alone, and are gone with it
_SSHD = """#!/bin/sh
exec unshare --mount --propagation private sh -c '
    mount --bind {folder}/passwd /etc/passwd && mount --bind {folder}/shadow /etc/shadow && exec {sshd} {more} "$@"
' sshd "$@"
"""


@dataclass(frozen=True)
class Door:
    """A server, the folder of its one user, and a file to carry there."""

    server: Server
    home: Path
    file: Path

    def carry(self, password: str) -> subprocess.CompletedProcess[str]:
        """As a person types it."""
        secret = self.server.folder / "secret"
        secret.write_text(f"{password}\n", encoding="utf-8")
        target = f"ssh://{USER}@127.0.0.1:{self.server.port}{self.home}/"
        words = ("--password-file", str(secret), "--accept-host-key", self.server.fingerprint)
        command = [sys.executable, "-m", "sampan", "carry", str(self.file), target, *words]
        environ = {key: value for key, value in os.environ.items() if key != "SSH_AUTH_SOCK"}
        return subprocess.run(
            command,
            env=environ | {"HOME": str(self.server.folder), "SAMPAN_LANG": "en"},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


@pytest.fixture(params=KINDS)
def door(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Door]:
    """It is open."""
    for tool in ("unshare", "mount", "openssl"):
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool}")
    if request.param == "questions" and not Path("/etc/pam.d/sshd").is_file():
        pytest.skip("sshd is not set up for PAM here")
    home = Path(tempfile.mkdtemp(prefix="sampan-porter-"))  # where another user may go
    os.chown(home, NUMBER, NUMBER)
    known = subprocess.run(
        ["openssl", "passwd", "-6", "-stdin"], input=PASSWORD, capture_output=True, text=True, check=True
    ).stdout.strip()
    entries = {"passwd": f"{USER}:x:{NUMBER}:{NUMBER}::{home}:/bin/sh\n", "shadow": f"{USER}:{known}:20000::::::\n"}
    for name, entry in entries.items():
        (tmp_path / name).write_text(Path("/etc", name).read_text() + entry)
        (tmp_path / name).chmod(0o644 if name == "passwd" else 0o600)
    script = tmp_path / "sshd"
    script.write_text(_SSHD.format(folder=tmp_path, sshd=ssh_server.SSHD, more=KINDS[request.param]))
    script.chmod(0o755)
    monkeypatch.setattr(ssh_server, "SSHD", str(script))
    file = tmp_path / "minilm-1.tar"
    file.write_bytes(os.urandom(300_000))
    with running(tmp_path, "Subsystem sftp internal-sftp") as server:
        yield Door(server, home, file)
    shutil.rmtree(home)


def test_a_password_opens_the_door(door: Door) -> None:
    done = door.carry(PASSWORD)
    assert done.returncode == 0, done.stdout + done.stderr
    arrived = door.home / door.file.name
    assert arrived.read_bytes() == door.file.read_bytes()
    assert arrived.stat().st_uid == NUMBER
    assert PASSWORD not in done.stdout + done.stderr


def test_a_wrong_password_is_said_to_be_wrong(door: Door) -> None:
    done = door.carry("guess")
    assert done.returncode == 5, done.stdout + done.stderr
    assert "neither the password nor any of the keys for the user porter" in done.stderr
    assert "guess" not in done.stdout + done.stderr
    assert list(door.home.iterdir()) == []
