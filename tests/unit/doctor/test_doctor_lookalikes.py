"""Texts whose plain words name the wrong trouble, and those that nothing here explains: the first finding counts."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sampan import i18n
from sampan.doctor import diagnose

# (what a machine prints, the code of the first finding; empty: nothing above information is to be said)
LOOKALIKES = [
    ("tail: inotify cannot be used, reverting to polling: No space left on device\n", "limits.inotify"),
    ("Failed to allocate directory watch: Too many open files\n", "limits.inotify"),
    ("mkdir: cannot create directory '/sys/fs/cgroup/memory/docker/a': No space left on device\n", "limits.cgroups"),
    ("FATAL:  could not create semaphores: No space left on device\n", "limits.semaphores"),
    (
        "k systemd[1]: Stopping bge...\n"
        "k systemd[1]: bge.service: State 'stop-sigterm' timed out. Killing.\n"
        "k systemd[1]: bge.service: Main process exited, code=killed, status=9/KILL\n"
        "k systemd[1]: bge.service: Failed with result 'timeout'.\n",
        "systemd.stop-timeout",
    ),
    (
        "k systemd[1]: bge.service: start operation timed out. Terminating.\n"
        "k systemd[1]: bge.service: State 'stop-sigterm' timed out. Killing.\n",
        "systemd.timeout",
    ),
    (
        "k systemd[9]: bge.service: Failed to execute command: Exec format error\n"
        "k systemd[9]: bge.service: Failed at step EXEC spawning /opt/bge/start.sh: Exec format error\n"
        "k systemd[1]: bge.service: Main process exited, code=exited, status=203/EXEC\n",
        "script.no-shebang",
    ),
    (
        "k systemd[9]: bge.service: Failed at step EXEC spawning /opt/bge/server: Exec format error\n",
        "loader.wrong-architecture",
    ),
    ("gguf_init_from_file: invalid magic characters 'vers'\n", "model.lfs-pointer"),
    ("gguf_init_from_file: invalid magic characters 'PK'\n", "gguf.not-gguf"),
    (
        "*1 upstream timed out (110: Connection timed out) while reading response header from upstream,"
        ' client: 10.0.0.5, upstream: "http://127.0.0.1:8080/v1/embeddings"\n',
        "serve.upstream-slow",
    ),
    (
        "[CRITICAL] WORKER TIMEOUT (pid:31)\n[ERROR] Worker (pid:31) was sent SIGKILL! Perhaps out of memory?\n",
        "serve.worker-timeout",
    ),
    ("dial unix /var/run/docker.sock: connect: permission denied\n", "container.no-daemon-right"),
    ("OSError: [Errno 13] Permission denied: '/usr/local/lib/python3.8/site-packages/numpy'\n", "perm.denied"),
    ("OSError: [Errno 13] Permission denied: '/opt/app/certifi/cacert.pem'\n", "perm.denied"),
    (
        "/etc/sampan/mini/keys.json cannot be read: [Errno 13] Permission denied: '/etc/sampan/mini/keys.json'.\n",
        "perm.keys",
    ),
    ("Fehler: '/etc/ssl/private/tls-key.pem': Permission denied\n", "perm.keys"),
    ("cat: /srv/site.key: Permission denied\n", "perm.keys"),
    ('Get "https://10.0.0.9/v2/": dial tcp 10.0.0.9:443: connect: connection refused\n', "net.unreachable"),
    ('Get "https://10.0.0.9/v2/": dial tcp 10.0.0.9:443: i/o timeout\n', "net.unreachable"),
    (
        "connect() failed (111: Connection refused) while connecting to upstream, client: 10.0.0.5,"
        ' upstream: "http://127.0.0.1:8080/"\n',
        "serve.not-listening",
    ),
    ("Unit test_x.py not found\n", ""),
    ("KeyError: 'qwen_key'\n", ""),
    ("HTTPError: 401 Client Error: Unauthorized for url: http://127.0.0.1:8080/v1/chat\n", ""),
    ("blk_update_request: I/O error, dev sr0, sector 0 op 0x0:(READ)\n", ""),
    ("ops@10.0.0.1: Permission denied (publickey,password).\n", ""),
    ("ERROR license check failed: license has expired on 2024-01-01\n", ""),
    ("kysec: initialized, exectl on\n", ""),
    ("test_illegal_instruction_is_reported ... ok\ntest_address_already_in_use ... ok\n", ""),
    ("step 3: downloaded 137 files\nreturn code 1, 137 tests\n", ""),
]


@pytest.mark.parametrize(("text", "code"), LOOKALIKES, ids=[text[:40] for text, _ in LOOKALIKES])
def test_the_first_finding_is_the_true_one(text: str, code: str) -> None:
    causes = [one.code for one in diagnose.of_text(text, {}).known if one.role == "cause"]
    assert causes == ([code] if code else [])


def test_a_second_trouble_beside_memory_is_kept() -> None:
    text = (
        'Failed to pull image "b": Get "https://10.0.0.8/v2/": dial tcp 10.0.0.8:443: connect: connection refused\n'
        "  Reason:       OOMKilled\n"
    )
    assert {"memory.oom-kill", "net.unreachable"} <= {one.code for one in diagnose.of_text(text, {}).known}


def test_the_address_that_did_not_answer_is_named() -> None:
    (found,) = diagnose.of_text("dial tcp 10.0.0.9:443: connect: connection refused\n", {}).known
    assert (found.values["host"], found.values["port"]) == ("10.0.0.9", "443")


@pytest.mark.parametrize(
    "text",
    [
        "failed to start daemon: overlay2: the backing xfs filesystem is formatted without d_type support\n",
        "./bge-server: cannot do that today\n",
        "Unable to negotiate with 10.1.2.3 port 22: no matching host key type found\n",
    ],
)
def test_what_failed_and_no_case_knows_is_shown(text: str) -> None:
    found = diagnose.of_text(f"all is well\n{text}", {})
    assert (found.known, [line.line for line in found.unknown]) == ((), [2])


def test_no_finding_is_not_called_health() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sampan", "doctor", "-"], input="hello\n", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert i18n.text("doctor.none-next")[:20] in done.stdout


def test_a_failure_comes_before_a_warning_of_higher_rank() -> None:
    text = "a.service: State 'stop-sigterm' timed out. Killing.\ncurl: connect to 10.8.0.9: No route to host\n"
    found = [(one.code, one.severity) for one in diagnose.of_text(text, {}).findings]
    assert found == [("net.unreachable", "error"), ("systemd.stop-timeout", "warning")]


def test_nobody_is_told_to_open_a_file_of_keys_to_others() -> None:
    text = "[Errno 13] Permission denied: '/etc/sampan/mini/keys.json'\n"
    found = diagnose.of_text(text, {}).known
    assert [one.code for one in found] == ["perm.keys"]
    assert "o=rX" not in found[0].fix
    assert "chmod 600" in found[0].fix
