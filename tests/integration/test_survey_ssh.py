"""The survey through a real OpenSSH server on loopback."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import asyncssh
import pytest
from tests.fakes.ssh_server import free_port, running

from sampan.edge import ssh
from sampan.edge.progress import SilentProgress
from sampan.errors import BadInputError, ExitCode, MissingToolError, NetworkError, SampanError, VerificationError
from sampan.flow import probing, surveys
from sampan.flow.tools import workshop_tools
from sampan.survey import pasted, script
from sampan.survey.machine import survey_this

pytestmark = pytest.mark.integration
MORE_HOST_KEYS = {"host-ecdsa": "ecdsa-sha2-nistp256", "host-rsa": "ssh-rsa"}
CONFIG = "HostKey {folder}/host-ecdsa\nHostKey {folder}/host-rsa\nAllowTcpForwarding yes"


@dataclass(frozen=True)
class Server:
    """A running sshd; ``identity`` logs in, ``stranger`` does not."""

    address: ssh.Address
    fingerprint: str
    identity: Path
    stranger: Path
    known_hosts: Path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("sshd")
    with running(folder, CONFIG.format(folder=folder), {**MORE_HOST_KEYS, "stranger": "ssh-ed25519"}) as sshd:
        host = asyncssh.read_private_key(folder / "host")
        known_hosts = folder / "known_hosts"
        known_hosts.write_bytes(f"[127.0.0.1]:{sshd.port} ".encode() + host.export_public_key())
        yield Server(sshd.address(), sshd.fingerprint, folder / "identity", folder / "stranger", known_hosts)


@pytest.fixture(autouse=True)
def no_agent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither the agent nor the keys nor the settings of the user who runs the tests."""
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def settings(server: Server) -> ssh.SshSettings:
    return ssh.SshSettings(identities=(server.identity,), known_hosts=(server.known_hosts,))


def failure(server: Server, given: ssh.SshSettings, address: ssh.Address | None = None) -> SampanError:
    with pytest.raises(SampanError) as caught:
        ssh.run_script(address or server.address, "echo hello", given)
    return caught.value


def test_the_survey_of_this_machine_through_ssh(server: Server) -> None:
    output = ssh.run_script(server.address, script.text(), settings(server))
    profile, here = pasted.profile(output, name="far", where="-"), survey_this()
    assert (profile.arch, profile.os, profile.libc, profile.cpu.features) == (
        here.arch,
        here.os,
        here.libc,
        here.cpu.features,
    )


def test_the_command_line(server: Server, tmp_path: Path) -> None:
    target, out = f"ssh://{server.address}", tmp_path / "far.json"
    identity = str(server.identity)
    argv = [sys.executable, "-m", "sampan", "survey", target, "--identity", identity, "--out", str(out)]
    refused = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert refused.returncode == ExitCode.VERIFICATION_FAILED
    assert f"--accept-host-key {server.fingerprint}" in refused.stderr.replace("\n", " ")
    assert not out.exists()
    subprocess.run([*argv, "--accept-host-key", server.fingerprint], capture_output=True, check=True)
    assert '"name": "127.0.0.1"' in out.read_text()
    assert not (tmp_path / ".ssh").exists()  # nothing is written to known_hosts


def test_an_agent_logs_in(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if shutil.which("ssh-agent") is None:
        pytest.skip("no ssh-agent here")
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", tmp_path / "agent"], stdout=subprocess.DEVNULL)
    try:
        for _ in range(50):
            if (tmp_path / "agent").exists():
                break
            time.sleep(0.1)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
        subprocess.run(["ssh-add", "-q", server.identity], check=True)
        assert ssh.run_script(server.address, "echo hello", replace(settings(server), identities=())) == "hello\n"
    finally:
        agent.terminate()
        agent.wait(10)


def test_through_a_jump_host(server: Server) -> None:
    given = replace(settings(server), jump=server.address)
    assert ssh.run_script(server.address, "echo hello", given) == "hello\n"


def test_a_target_that_the_jump_host_cannot_reach(server: Server) -> None:
    given = replace(settings(server), jump=server.address)
    error = failure(server, given, replace(server.address, port=free_port()))
    assert (type(error), error.key) == (NetworkError, "ssh.unreachable")


def test_an_unknown_host_key_is_refused_and_named(server: Server, tmp_path: Path) -> None:
    unknown = replace(settings(server), known_hosts=(tmp_path / "none",))
    error = failure(server, unknown)
    assert (type(error), error.key) == (VerificationError, "ssh.host-key-unknown")
    assert error.values["fingerprint"] == server.fingerprint
    wrong = failure(server, replace(unknown, accept="SHA256:" + "A" * 43))
    assert wrong.key == "ssh.host-key-unknown"
    accepted = replace(unknown, accept=server.fingerprint)
    assert ssh.run_script(server.address, "echo hello", accepted) == "hello\n"


@pytest.mark.parametrize("kind", ["host", "host-ecdsa", "host-rsa"])
def test_the_fingerprint_of_any_of_its_host_keys_is_accepted(server: Server, tmp_path: Path, kind: str) -> None:
    key = asyncssh.read_private_key(server.known_hosts.parent / kind)
    for known in (tmp_path / "none", server.known_hosts):
        given = replace(settings(server), known_hosts=(known,), accept=key.get_fingerprint())
        assert ssh.run_script(server.address, "echo hello", given) == "hello\n"


def test_a_known_host_key_of_any_family_is_asked_for(server: Server, tmp_path: Path) -> None:
    for kind in ("host-ecdsa", "host-rsa"):
        key = asyncssh.read_private_key(server.known_hosts.parent / kind)
        known = tmp_path / kind
        known.write_bytes(f"[127.0.0.1]:{server.address.port} ".encode() + key.export_public_key())
        assert (
            ssh.run_script(server.address, "echo hello", replace(settings(server), known_hosts=(known,))) == "hello\n"
        )


def test_another_host_key_than_the_known_one(server: Server, tmp_path: Path) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    known = tmp_path / "known"
    known.write_text(f"[127.0.0.1]:{server.address.port} {other}")
    error = failure(server, replace(settings(server), known_hosts=(known,)))
    assert (type(error), error.key) == (VerificationError, "ssh.host-key-changed")


def test_a_key_that_is_not_accepted(server: Server) -> None:
    error = failure(server, replace(settings(server), identities=(server.stranger,)))
    assert (type(error), error.key) == (MissingToolError, "ssh.denied")


@pytest.mark.parametrize("content", [None, "no key at all\n"])
def test_an_identity_that_cannot_be_used(server: Server, tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "key"
    if content:
        path.write_text(content)
    error = failure(server, replace(settings(server), identities=(path,)))
    assert (type(error), error.key) == (BadInputError, "ssh.identity")


def test_a_script_that_does_not_end(server: Server) -> None:
    with pytest.raises(NetworkError) as caught:
        ssh.run_script(server.address, "sleep 60", replace(settings(server), run_seconds=1))
    assert caught.value.key == "ssh.slow"


def test_a_port_where_nothing_listens(server: Server) -> None:
    error = failure(server, settings(server), replace(server.address, port=free_port()))
    assert (type(error), error.key) == (NetworkError, "ssh.unreachable")


def test_a_port_where_something_else_or_nobody_answers(server: Server) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = ssh.Address("127.0.0.1", silent.getsockname()[1], "root")
        error = failure(server, replace(settings(server), connect_seconds=1), address)
    assert (type(error), error.key) == (NetworkError, "ssh.slow")


def test_the_probe_through_ssh(server: Server) -> None:
    try:
        told = probing.survey_script(workshop_tools(SilentProgress()))
    except MissingToolError as error:
        pytest.skip(f"no compiler: {error}")
    profile = pasted.profile(ssh.run_script(server.address, told, settings(server)), name="far", where="-")
    direct = probing.probed(surveys.here(), workshop_tools(SilentProgress()))
    assert (profile.cpu.probe, profile.cpu.features) == (direct.cpu.probe, direct.cpu.features)
    assert profile.cpu.probe is not None
