"""A release takes over beside the running one, or by a restart that says why; the memory limit follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.install.conftest import Target, make_bundle, make_plan, seal

from sampan.errors import ServiceError
from sampan.install import change, lookup, takeover, unit_diff
from sampan.install.facts import read_record
from sampan.install.model import Health, OwnLimits
from sampan.install.rollback import rollback
from sampan.install.steps import install

Make = Callable[..., Path]
KILL = ("systemctl", "kill", "sampan-mini.service", "--kill-who=main")


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A bundle of a release whose service can inherit a listener."""

    def made(release: int, *, able: bool = True, memory: int = 400) -> Path:
        plan = replace(make_plan(release=release), memory_total_bytes=memory << 20)
        bundle = make_bundle(tmp_path / f"mini-{release}", plan)
        if able:
            (bundle / "app/sampan/gateway").mkdir(parents=True)
            (bundle / "app/sampan/gateway/handover.py").write_text("")
        return seal(bundle)

    return made


@pytest.fixture
def running(target: Target, make: Make) -> Target:
    """Release 1 runs, and can hand over."""
    target.systemd.succession = "works"
    install(target.options(make(1)), target.hands())
    target.systemd.log.clear()
    target.said.clear()
    return target


def limits(target: Target) -> list[str]:
    """What the memory limit was set to, one after the other."""
    return [words[-1] for words in target.systemd.log if words[1] == "set-property"]


def signals(target: Target) -> list[str]:
    return [words[-1] for words in target.systemd.log if words[: len(KILL)] == KILL]


def drop_ins(target: Target) -> list[Path]:
    return list(target.root.glob("run/systemd/system*/*.d"))


def test_a_new_release_takes_over_without_a_restart(running: Target, make: Make) -> None:
    before = running.systemd.state["MainPID"]
    install(running.options(make(2, memory=600)), running.hands())
    assert not running.systemd.called("systemctl", "restart")
    assert signals(running) == ["--signal=USR2"]
    assert running.systemd.state["MainPID"] != before
    assert limits(running) == ["MemoryMax=1512M", "MemoryMax=856M"]  # 656 of the old one and 856 of the new one
    assert drop_ins(running) == []
    assert (running.prefix / "current").readlink() == Path("releases/2")
    assert any("without a pause" in line for line in running.said)


def test_rolling_back_hands_over_too_and_ends_at_the_old_limit(running: Target, make: Make) -> None:
    install(running.options(make(2, memory=600)), running.hands())
    running.systemd.log.clear()
    machine = lookup.find(None, prefix=running.prefix).machine(running.systemd, running.root)
    rollback(running.prefix, None, machine, running.hands(), health_seconds=5)
    assert not running.systemd.called("systemctl", "restart")
    assert limits(running) == ["MemoryMax=1512M", "MemoryMax=656M"]
    assert "MemoryMax=656M" in running.unit.read_text()
    assert drop_ins(running) == []


def test_a_successor_that_does_not_come_leaves_the_running_release_alone(running: Target, make: Make) -> None:
    before, main = running.files(), running.systemd.state["MainPID"]
    running.systemd.succession = "fails"
    with pytest.raises(ServiceError) as caught:
        install(running.options(make(2)), running.hands())
    assert (caught.value.key, caught.value.values["detail"]) == ("install.not-taken-over", "told to")
    assert not running.systemd.called("systemctl", "restart")
    assert running.systemd.state["MainPID"] == main
    assert {path: what for path, what in running.files().items() if path in before} == before
    assert limits(running)[-1] == "MemoryMax=656M"
    assert drop_ins(running) == []


def test_who_breaks_off_the_wait_calls_the_successor_off(running: Target, make: Make) -> None:
    main, hands = running.systemd.state["MainPID"], running.hands()

    def impatient(_seconds: float) -> None:
        if "Successor" in running.systemd.state:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        install(running.options(make(2)), replace(hands, sleep=impatient))
    assert signals(running) == ["--signal=USR2", "--signal=USR1"]
    assert not running.systemd.called("systemctl", "restart")
    assert running.systemd.state["MainPID"] == main
    assert (running.prefix / "current").readlink() == Path("releases/1")
    assert drop_ins(running) == []


def test_a_release_that_answers_wrongly_after_it_took_over_is_followed_by_the_old_one(
    running: Target, make: Make
) -> None:
    running.selftest_error = ServiceError("target.selftest", text="x", score="0.1", minimum=0.99)
    with pytest.raises(ServiceError):
        install(running.options(make(2)), running.hands())
    assert running.systemd.called("systemctl", "restart")
    assert (running.prefix / "current").readlink() == Path("releases/1")
    assert drop_ins(running) == []


def test_the_old_ones_answer_is_not_taken_for_the_new_ones(running: Target, make: Make) -> None:
    answers = iter(["mini-1", "mini-1", "mini-2"])
    hands = replace(running.hands(), health=lambda _host, _port, _tls: Health("ready", release=next(answers)))
    install(running.options(make(2)), hands)
    assert list(answers) == []


def test_the_limit_waits_for_the_end_of_the_predecessor(
    running: Target, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[bool] = []

    def lives(_machine: object, _marked: str) -> bool:
        looks.append((running.prefix / "current").readlink() == Path("releases/2"))
        assert limits(running) == ["MemoryMax=1312M"]
        return len(looks) < 4

    monkeypatch.setattr(takeover, "lives", lives)
    install(running.options(make(2)), running.hands())
    assert looks == [True] * 4
    assert limits(running) == ["MemoryMax=1312M", "MemoryMax=656M"]
    assert any("answers what it has begun" in line for line in running.said)


def _asked(target: Target, make: Make) -> str:
    install(target.options(make(2), restart=True), target.hands())
    return "--restart was given"


def _other_port(target: Target, make: Make) -> str:
    install(target.options(make(2), port=9333), target.hands())
    return "(ExecStart)"


def _old_service(target: Target, make: Make) -> str:
    status = target.root / "proc" / target.systemd.state["MainPID"] / "status"
    status.write_text("SigCgt:\t0000000000004002\n")
    install(target.options(make(2)), target.hands())
    return "a release that cannot hand over yet"


def _old_release(target: Target, make: Make) -> str:
    install(target.options(make(2, able=False)), target.hands())
    return "release 2 cannot take over"


def _short_of_memory(target: Target, make: Make) -> str:
    install(target.options(make(2)), replace(target.hands(), free_memory=lambda _pid: 100 << 20))
    assert drop_ins(target) == []
    return "need 528 MiB more memory, 100 MiB are free"


@pytest.mark.parametrize("case", [_asked, _other_port, _old_service, _old_release, _short_of_memory])
def test_where_it_would_not_be_sound_a_restart_says_why(
    running: Target, make: Make, case: Callable[[Target, Make], str]
) -> None:
    why = case(running, make)
    said = [line for line in running.said if "by a restart" in line]
    assert len(said) == 1
    assert why in said[0]
    assert running.systemd.called("systemctl", "restart")
    assert signals(running) == []
    record = read_record(running.prefix)
    assert record is not None
    assert record.release == 2


def test_a_service_that_does_not_run_is_started_and_nothing_is_said_of_a_pause(running: Target, make: Make) -> None:
    running.systemd.run(("systemctl", "stop", "sampan-mini.service"))
    install(running.options(make(2)), running.hands())
    assert running.systemd.called("systemctl", "restart")
    assert not any("pause" in line for line in running.said)


def test_an_administrators_own_limit_is_not_touched(running: Target, make: Make) -> None:
    running.systemd.run(("systemctl", "set-property", "sampan-mini.service", "--runtime", "MemoryMax=4000M"))
    running.systemd.log.clear()
    install(running.options(make(2)), running.hands())
    assert limits(running) == []
    assert signals(running) == ["--signal=USR2"]
    assert len(drop_ins(running)) == 1


def test_the_next_command_puts_the_limit_right_after_a_kill(
    running: Target, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise SystemError  # as if the process were gone: nothing of it is taken back

    monkeypatch.setattr("sampan.install.recover.end_of_switch", killed)
    with pytest.raises(SystemError):
        install(running.options(make(2)), running.hands())
    monkeypatch.undo()
    assert len(drop_ins(running)) == 1
    machine = lookup.find(None, prefix=running.prefix).machine(running.systemd, running.root)
    change.settle(running.prefix, machine, running.hands())
    assert (running.prefix / "current").readlink() == Path("releases/2")
    assert drop_ins(running) == []


OLD = "[Service]\n# x\nExecStart=/a serve --port 1\nMemoryMax=600M\nTasksMax=5\nEnvironment=A=1\nEnvironment=B=2\n"


@pytest.mark.parametrize(
    ("change", "systemd", "wanted"),
    [
        (("# x\n", ""), 219, ()),
        (("600M", "700M"), 219, ()),
        (("[Service]\n", "[Service]\nExecReload=/b\nRestartSec=9\n"), 219, ()),
        (("TasksMax=5", "TasksMax=6"), 247, ()),
        (("TasksMax=5", "TasksMax=6"), 243, ("TasksMax",)),
        (("--port 1", "--port 2"), 255, ("ExecStart",)),
        (("Environment=B=2", "Environment=B=3"), 255, ("Environment",)),
        (("Environment=B=2\n", "UMask=0077\n"), 255, ("Environment", "UMask")),
    ],
)
def test_what_of_a_unit_needs_a_start(change: tuple[str, str], systemd: int, wanted: tuple[str, ...]) -> None:
    assert unit_diff.for_a_start_only(OLD, OLD.replace(*change), systemd) == wanted


def test_the_limit_of_a_unit_in_either_word() -> None:
    assert unit_diff.memory_limit(OLD) == ("MemoryMax", 600 << 20)
    assert unit_diff.memory_limit(OLD.replace("MemoryMax", "MemoryLimit")) == ("MemoryLimit", 600 << 20)
    assert unit_diff.memory_limit("[Service]\n") is None


def test_own_limits_are_those_that_are_raised(target: Target, make: Make) -> None:
    target.systemd.succession = "works"
    install(target.options(make(1), limits=OwnLimits(memory_bytes=500 << 20)), target.hands())
    install(target.options(make(2)), target.hands())
    assert limits(target) == ["MemoryMax=1028M", "MemoryMax=500M"]  # the plan may need 528
