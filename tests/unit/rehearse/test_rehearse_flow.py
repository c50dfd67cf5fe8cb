from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.fakes.mini_bundle import mini_bundle, mini_plan
from tests.unit.rehearse.outputs import good, lines, selftest, step

from sampan import i18n
from sampan.edge.progress import SilentProgress
from sampan.errors import BadInputError, ExitCode, MissingToolError, RehearsalError
from sampan.rehearse.machine import MachineFacts, Registration
from sampan.rehearse.rehearse import rehearse
from sampan.rehearse.session import session
from sampan.spec import codec
from sampan.spec.artefacts import Rehearsal
from sampan.spec.ports import Completed
from sampan.survey import known

KUNPENG = known.load("kylin-v10-sp3-kunpeng920")
WORKSHOP = MachineFacts(
    arch="x86_64",
    root=True,
    missing_tools=(),
    kernel=(5, 10),
    page_size=4096,
    features=frozenset(),
    qemu=None,
    binfmt_mounted=True,
    registrations=(Registration("qemu-aarch64", "b700", True, "F"),),
    user_namespaces=0,
)


@pytest.fixture(autouse=True)
def own_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests also run without root, who alone may give a folder to another user."""
    monkeypatch.setattr("os.chown", lambda *_: None)


class PrintingRunner:
    """Prints what a sandbox would print; ``during`` looks around while it "runs"."""

    def __init__(self, texts: Sequence[str], during: Callable[[Path], None] = lambda _: None) -> None:
        self._texts, self._during = texts, during
        self.argv: tuple[str, ...] = ()

    def run(
        self,
        argv: Sequence[str],
        *,
        on_line: Callable[[str], None] | None = None,
        **_: object,
    ) -> Completed:
        self.argv = tuple(argv)
        self._during(Path(argv[-1]).parent)
        for text in self._texts:
            if on_line:
                on_line(text)
        return Completed(self.argv, 0, "\n".join(self._texts))


def printing(**changed: list[str]) -> PrintingRunner:
    return PrintingRunner([line.text for line in lines({**good(), **changed})])


def run(tmp_path: Path, runner: PrintingRunner, facts: MachineFacts = WORKSHOP) -> Rehearsal:
    bundle = tmp_path / "mini-1"
    if not bundle.exists():
        mini_bundle(tmp_path)
    return rehearse(
        bundle,
        KUNPENG,
        mini_plan(KUNPENG),
        busybox=tmp_path / "busybox",
        runner=runner,
        progress=SilentProgress(),
        work=tmp_path / "work",
        look=lambda _: facts,
    )


def test_a_bundle_that_proved_itself(tmp_path: Path) -> None:
    found = run(tmp_path, printing())
    assert (found.status, found.reason, found.cpu_model) == ("passed", "", "cortex-a76")
    assert (found.page_size, found.emulated) == (65536, True)
    assert [timing.name for timing in found.timings] == list(good())
    assert codec.from_json(Rehearsal, codec.to_json(found), where="x") == found
    assert list((tmp_path / "work").iterdir()) == []


def test_the_transcript_is_the_same_in_every_run_and_language(tmp_path: Path) -> None:
    first = run(tmp_path, printing()).transcript
    i18n.use("zh")
    try:
        second = run(tmp_path, printing(log=step("log", output=["other times 12.3 s"]))).transcript
    finally:
        i18n.use("en")
    assert first == second
    assert str(tmp_path) not in first
    assert "4711" not in first
    assert "qemu-user as cortex-a76" in first
    assert "工作间" in first or "模拟" in first


def test_the_transcript_of_the_golden_run(tmp_path: Path) -> None:
    golden = Path(__file__).parent / "golden" / "transcript.txt"
    assert run(tmp_path, printing()).transcript == golden.read_text(encoding="utf-8")


def test_a_failed_rehearsal_leaves_its_whole_output(tmp_path: Path) -> None:
    found = run(tmp_path, printing(selftest=step("selftest", output=selftest(0.5))))
    assert found.status == "failed"
    assert "0.5000" in found.reason
    (log,) = (tmp_path / "work").iterdir()
    assert log.name == "mini-1.log"
    assert "@begin selftest" in log.read_text(encoding="utf-8")
    assert run(tmp_path, printing()).status == "passed"
    assert not log.exists()


def test_a_sandbox_that_cannot_be_made_is_no_fault_of_the_bundle(tmp_path: Path) -> None:
    found = run(tmp_path, PrintingRunner(["@pid 1", "mount: permission denied"]))
    assert found.status == "skipped"
    assert "mount: permission denied" in found.reason
    assert "--privileged" in found.reason


def test_a_folder_that_is_no_bundle_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "mini-1").mkdir()
    with pytest.raises(BadInputError) as caught:
        run(tmp_path, printing())
    assert (caught.value.key, caught.value.exit_code) == ("file.missing", ExitCode.BAD_INPUT)


def test_without_root_it_says_so_and_starts_nothing(tmp_path: Path) -> None:
    runner = printing()
    found = run(tmp_path, runner, MachineFacts(**{**vars(WORKSHOP), "root": False}))
    assert (found.status, found.checks, found.transcript) == ("skipped", (), "")
    assert "sudo" in found.reason
    assert runner.argv == ()
    assert not (tmp_path / "work").exists()


def test_the_folder_is_there_while_it_runs_and_gone_when_interrupted(tmp_path: Path) -> None:
    seen: list[str] = []

    def interrupt(folder: Path) -> None:
        seen.extend(sorted(entry.name for entry in folder.iterdir()))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, PrintingRunner([], interrupt))
    assert seen == ["binfmt", "cpuinfo", "home", "lock", "root", "sandbox.sh", "steps.sh", "userns.sh"]
    assert list((tmp_path / "work").iterdir()) == []


def test_what_a_killed_rehearsal_left_is_removed_but_not_a_running_one(tmp_path: Path) -> None:
    left = tmp_path / "work" / "rehearsal-left"
    (left / "home").mkdir(parents=True)
    (left / "lock").touch()
    other: list[bool] = []

    def nested(folder: Path) -> None:
        run(tmp_path, printing())
        other.append(folder.exists())

    run(tmp_path, PrintingRunner([line.text for line in lines(good())], nested))
    assert not left.exists()
    assert other == [True]


def test_removing_follows_no_link(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()

    def plant(folder: Path) -> None:
        (folder / "home" / "link").symlink_to(precious)

    run(tmp_path, PrintingRunner([line.text for line in lines(good())], plant))
    assert (precious / "file").exists()


def start_session(tmp_path: Path, runner: PrintingRunner, facts: MachineFacts = WORKSHOP) -> int:
    with session(
        mini_bundle(tmp_path),
        KUNPENG,
        mini_plan(KUNPENG),
        busybox=tmp_path / "busybox",
        runner=runner,
        work=tmp_path / "work",
        look=lambda _: facts,
    ) as service:
        assert service.enter == ("nsenter", f"--net=/proc/{service.pid}/ns/net")
        assert service.url == "http://127.0.0.1:8080"
        return service.pid


def test_a_session_that_ends_with_its_service_ready_fails_only_afterwards(tmp_path: Path) -> None:
    steps = {name: good()[name] for name in ("machine", "serve")}
    with pytest.raises(RehearsalError):
        start_session(tmp_path, PrintingRunner([line.text for line in lines(steps)] + step("stop", result="137")))


def test_a_session_whose_service_does_not_start_says_why(tmp_path: Path) -> None:
    steps = {"machine": good()["machine"], "serve": step("serve", result="4")}
    with pytest.raises(RehearsalError) as caught:
        start_session(tmp_path, PrintingRunner([line.text for line in lines(steps)]))
    assert (caught.value.key, caught.value.exit_code) == ("rehearse.session", ExitCode.REHEARSAL_FAILED)
    assert "exit code 4" in caught.value.message


def test_a_session_on_a_machine_that_cannot_is_refused(tmp_path: Path) -> None:
    facts = MachineFacts(**{**vars(WORKSHOP), "registrations": ()})
    with pytest.raises(MissingToolError) as caught:
        start_session(tmp_path, printing(), facts)
    assert "qemu-user-static" in caught.value.message
