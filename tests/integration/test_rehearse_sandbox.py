"""The real sandbox with a bundle of three shell scripts: natively and on emulated CPUs."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.mini_bundle import ATOMIC_ADD, INSTALL, SERVE, aarch64_program, mini_bundle, mini_plan

from sampan.edge.process import ProcessRunner
from sampan.edge.progress import SilentProgress
from sampan.errors import NetworkError, RehearsalError
from sampan.flow import rehearsals
from sampan.flow.tools import workshop_tools
from sampan.rehearse import machine
from sampan.rehearse.machine import MachineFacts, Refusal
from sampan.rehearse.rehearse import rehearse
from sampan.rehearse.script import Limits
from sampan.rehearse.session import session
from sampan.spec.artefacts import Rehearsal
from sampan.spec.target import TargetProfile
from sampan.survey import known
from sampan.survey.machine import survey_this

pytestmark = [pytest.mark.integration, pytest.mark.alone]

KUNPENG = known.load("kylin-v10-sp3-kunpeng920")
D2000 = known.load("kylin-v10-phytium-d2000")
ZHAOXIN = known.load("zhaoxin")


@pytest.fixture(autouse=True)
def clean_machine() -> Iterator[None]:
    """Whatever a rehearsal does, this machine's mounts and registrations are as before."""
    places = ("/proc/self/mounts", "/proc/net/dev")
    before = [_shape(place) for place in places]
    yield
    assert [_shape(place) for place in places] == before


def _shape(place: str) -> list[str]:
    return sorted(line.split()[1 if "mounts" in place else 0] for line in Path(place).read_text().splitlines()[2:])


def busybox(arch: str) -> Path:
    try:
        return rehearsals.busybox(arch, workshop_tools(SilentProgress()))
    except NetworkError as error:
        pytest.skip(f"no package mirror: {error}")


def possible(profile: TargetProfile, facts: MachineFacts | None = None) -> MachineFacts:
    facts = facts or machine.look(profile.arch)
    way = machine.decide(profile, facts)
    if isinstance(way, Refusal):
        pytest.skip(f"no rehearsal here: {way.key} {way.values}")
    return facts


def run(
    profile: TargetProfile,
    bundle: Path,
    work: Path,
    *,
    limits: Limits | None = None,
    facts: MachineFacts | None = None,
) -> Rehearsal:
    facts = possible(profile, facts)
    return rehearse(
        bundle,
        profile,
        mini_plan(profile),
        busybox=busybox(profile.arch),
        runner=ProcessRunner(),
        progress=SilentProgress(),
        work=work,
        limits=limits,
        look=lambda _: facts,
    )


def test_natively(tmp_path: Path) -> None:
    this = survey_this()
    found = run(this, mini_bundle(tmp_path), tmp_path / "work")
    assert (found.status, found.reason) == ("passed", "")
    assert (found.emulated, found.cpu_model, found.page_size) == (False, "native", this.page_size)


def test_on_an_emulated_cpu_with_big_pages(tmp_path: Path) -> None:
    bundle = mini_bundle(tmp_path)
    found = run(KUNPENG, bundle, tmp_path / "work")
    assert (found.status, found.reason) == ("passed", "")
    assert (found.emulated, found.cpu_model, found.page_size) == (True, "cortex-a76", 65536)
    checks = {check.name: check.detail for check in found.checks}
    assert checks["cpu"].endswith("AT_HWCAP 0x119ffb")
    assert checks["start"] == "ready, variant armv8.0"
    assert run(KUNPENG, bundle, tmp_path / "work").transcript == found.transcript


def test_with_a_registration_that_only_the_sandbox_sees(tmp_path: Path) -> None:
    facts = possible(D2000, replace(machine.look("aarch64"), registrations=()))
    registrations = list(Path("/proc/sys/fs/binfmt_misc").glob("*"))
    found = run(D2000, mini_bundle(tmp_path), tmp_path / "work", facts=facts)
    assert (found.status, found.reason, found.cpu_model) == ("passed", "", "cortex-a57")
    assert list(Path("/proc/sys/fs/binfmt_misc").glob("*")) == registrations


@pytest.mark.skipif(platform.machine() != "x86_64", reason="emulates an x86-64 CPU on an x86-64 machine")
def test_an_older_cpu_of_this_machines_own_architecture(tmp_path: Path) -> None:
    facts = possible(ZHAOXIN)
    if machine.decide(ZHAOXIN, facts).binfmt == "none":  # type: ignore[union-attr]
        pytest.skip("this CPU is no more than the target's, or cannot be emulated here")
    found = run(ZHAOXIN, mini_bundle(tmp_path), tmp_path / "work")
    assert (found.status, found.reason, found.emulated) == ("passed", "", True)


def test_an_instruction_that_the_target_lacks(tmp_path: Path) -> None:
    """The same bundle passes on Kunpeng's stand-in and dies on Phytium's."""
    bundle = mini_bundle(tmp_path, serve=f"./atomics || exit $?\n{SERVE}")
    aarch64_program(bundle / "atomics", *ATOMIC_ADD)
    assert run(KUNPENG, bundle, tmp_path / "work").status == "passed"
    found = run(D2000, bundle, tmp_path / "work")
    assert found.status == "failed"
    assert "illegal instruction under cortex-a57" in found.reason


PROBES = {
    "libc": "ls /lib /lib64 /usr/lib /etc /sys 2>/dev/null; echo done",
    "network": "ifconfig -a | grep -c Link",
    "root": "touch /x 2>&1 || touch /media/mini-1/x 2>&1 || touch /bin/x 2>&1 || echo refused",
    "noexec": "cp /bin/busybox /tmp/b && /tmp/b true 2>&1; rm /tmp/b",
    "privileges": "mkdir -p $HOME/m; mount -t tmpfs none $HOME/m 2>&1 || echo refused",
    "processes": "ls -d /proc/[0-9]* | wc -l",
}


def test_what_the_bundle_can_reach(tmp_path: Path) -> None:
    """The probes print through a golden text of their own making."""
    probes = "\n".join(f'echo "probe {name}: $({command})" >>"$HOME/probes"' for name, command in PROBES.items())
    bundle = mini_bundle(tmp_path, install=f"{probes}\ncat $HOME/probes\nexit 7\n")
    found = run(survey_this(), bundle, tmp_path / "work")
    assert "exit code 7" in found.reason
    log = (tmp_path / "work" / "mini-1.log").read_text()
    seen = dict(line.split("probe ", 1)[1].split(": ", 1) for line in log.splitlines() if "probe " in line)
    assert seen["libc"] == "done"
    assert seen["network"] == "1"
    assert "denied" in seen["noexec"].lower()
    assert int(seen["processes"]) < 12
    assert log.count("refused") >= 2


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"install": "echo broken; exit 9\n"}, "exit code 9: broken"),
        ({"install": INSTALL + "kill -9 $$\n"}, "SIGKILL"),
        ({"serve": "echo 'no variant fits'; exit 4\n"}, "exit code 4: no variant fits"),
        ({"serve": SERVE.replace("exit 0", "exit 3")}, "exit code 3"),
        ({"serve": SERVE.replace("kill $server", ":")}, "left behind: process"),
        ({"serve": SERVE.replace("rm -r $www", "touch /tmp/left")}, "file /tmp/left"),
        ({"golden": [{"text": "hello", "score": 0.5, "minimum": 0.99}]}, "cosine 0.5000"),
        ({"golden": []}, "compared nothing"),
    ],
)
def test_failures_are_found_and_named(tmp_path: Path, changed: dict[str, str], words: str) -> None:
    found = run(survey_this(), mini_bundle(tmp_path, **changed), tmp_path / "work")  # type: ignore[arg-type]
    assert found.status == "failed"
    assert words in found.reason


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"install": "sleep 600\n"}, "“install” was not done after"),
        ({"serve": "sleep 600\n"}, "“serve” was not done after"),
        ({"serve": SERVE.replace("; exit 0", "; sleep 600")}, "137"),
    ],
)
def test_no_step_waits_for_ever(tmp_path: Path, changed: dict[str, str], words: str) -> None:
    bundle = mini_bundle(tmp_path, **changed)  # type: ignore[arg-type]
    found = run(survey_this(), bundle, tmp_path / "work", limits=Limits(2, 2, 2, 2, 2, 2))
    assert found.status == "failed"
    assert words in found.reason


def test_a_damaged_file_is_found_by_the_install(tmp_path: Path) -> None:
    bundle = mini_bundle(tmp_path)
    (bundle / "sampan").write_text("#!/bin/sh\n")
    assert "exit code 9" in run(survey_this(), bundle, tmp_path / "work").reason


def test_a_session_answers_in_its_own_network_only(tmp_path: Path) -> None:
    possible(KUNPENG)
    with session(
        mini_bundle(tmp_path),
        KUNPENG,
        mini_plan(KUNPENG),
        busybox=busybox("aarch64"),
        runner=ProcessRunner(),
        work=tmp_path / "work",
    ) as service:
        ask = f"import urllib.request as u; print(u.urlopen('{service.url}/v1/models').read().decode())"
        inside = subprocess.run(
            [*service.enter, sys.executable, "-c", ask], capture_output=True, text=True, check=True
        )
        assert "mini-model" in inside.stdout
        assert "mini-model" not in outside(service.url)
    assert list((tmp_path / "work").iterdir()) == []


def outside(url: str) -> str:
    """What this machine answers at the same address: nothing, or another program's words."""
    try:
        with urllib.request.urlopen(f"{url}/v1/models", timeout=5) as answer:
            return str(answer.read())
    except OSError:
        return ""


def test_a_session_whose_service_dies_says_so(tmp_path: Path) -> None:
    this = survey_this()
    possible(this)
    with (
        pytest.raises(RehearsalError) as caught,
        session(
            mini_bundle(tmp_path, serve="echo no; exit 4\n"),
            this,
            mini_plan(this),
            busybox=busybox(this.arch),
            runner=ProcessRunner(),
            work=tmp_path / "work",
        ),
    ):
        pytest.fail("the service cannot have started")
    assert "exit code 4" in caught.value.message


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_who_ends_the_program_ends_the_sandbox(tmp_path: Path, number: signal.Signals) -> None:
    this = survey_this()
    possible(this)
    mark = f"{os.getpid()}{int(number)}"
    mini_bundle(tmp_path, install=f"sleep {mark}\n")
    program = (
        "import sys; from pathlib import Path; from tests.integration.test_rehearse_sandbox import run, survey_this\n"
        "run(survey_this(), Path(sys.argv[1]) / 'mini-1', Path(sys.argv[1]) / 'work')"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stderr=subprocess.DEVNULL)
    wait_until(lambda: running(mark))
    process.send_signal(number)
    process.wait(30)
    wait_until(lambda: not running(mark))
    if number == signal.SIGINT:
        assert list((tmp_path / "work").iterdir()) == []
    else:  # nobody was left to clean up; the next run does
        shutil.rmtree(tmp_path / "mini-1")
        assert run(this, mini_bundle(tmp_path), tmp_path / "work").reason == ""
        assert list((tmp_path / "work").iterdir()) == []


def running(mark: str) -> bool:
    """Whether the sandbox's `sleep` is there: as a process of this machine it shows its command line."""
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if place.read_bytes().split(b"\0")[-3:-1] == [b"sleep", mark.encode()]:
                return True
        except OSError:  # it ended meanwhile
            continue
    return False


def wait_until(condition: object, seconds: float = 30.0) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)
