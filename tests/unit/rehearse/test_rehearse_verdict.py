from __future__ import annotations

import pytest
from tests.fakes.mini_bundle import mini_plan
from tests.unit.rehearse.outputs import MACHINE, good, lines, selftest, step

from sampan.rehearse import cpu
from sampan.rehearse.failure import last_words
from sampan.rehearse.machine import Way
from sampan.rehearse.steps import parse
from sampan.rehearse.verdict import Verdict, judge, variant_taken
from sampan.survey import known

KUNPENG = known.load("kylin-v10-sp3-kunpeng920")


def verdict(done: bool = True, drop: tuple[str, ...] = (), **changed: list[str]) -> Verdict:
    stand_in = cpu.emulated(KUNPENG)
    assert stand_in is not None
    steps = {name: block for name, block in {**good(), **changed}.items() if name not in drop}
    return judge(parse(lines(steps, done=done)), KUNPENG, mini_plan(KUNPENG), Way(stand_in, "machine"))


def reason(result: Verdict) -> str:
    assert result.failure is not None
    return result.failure.text


def machine(index: int, text: str) -> list[str]:
    return step("machine", output=[text if number == index else line for number, line in enumerate(MACHINE)])


def test_a_good_rehearsal_passes_every_check() -> None:
    result = verdict()
    assert result.failure is None
    assert all(check.ok for check in result.checks)
    assert {check.name: check.detail for check in result.checks} == {
        "cpu": "cortex-a76 (Armv8.2), aarch64, AT_HWCAP 0x119ffb",
        "page-size": "65536 bytes",
        "network": "lo",
        "user": "uid 1000, no_new_privs set",
        "install": "exit code 0",
        "start": "ready",
        "models": "mini-model",
        "golden-1": "cosine 0.9999, needed 0.99",
        "golden-2": "cosine 1.0000, needed 0.99",
        "status": "exit code 0",
        "stop": "exit code 0",
        "rest": "no process, socket, temporary file or open port",
    }


@pytest.mark.parametrize(
    ("index", "text", "words"),
    [
        (0, "x86_64", "cpu"),
        (1, "uid=0 gid=0", "uid 0"),
        (2, "NoNewPrivs:\t0", "no_new_privs not set"),
        (3, "interfaces lo eth0 ", "lo eth0"),
        (4, "auxv 0000000000000006 0000000000001000 0000000000000010 0000000000119ffb", "4096 bytes"),
        (4, "auxv 0000000000000006 0000000000010000 0000000000000010 00000000000008fb", "AT_HWCAP 0x8fb"),
    ],
)
def test_a_sandbox_that_is_not_as_promised_proves_nothing(index: int, text: str, words: str) -> None:
    assert words in reason(verdict(machine=machine(index, text)))


def test_a_refusal_of_the_service_is_told_in_its_own_words() -> None:
    log = [
        "I loading",
        "Error: This CPU can run none of the engine's variants. armv8.2 needs: asimddp.",
        "Next: ship.",
    ]
    result = verdict(serve=step("serve", result="4"), log=step("log", output=log))
    assert "exit code 4" in reason(result)
    assert "needs: asimddp" in reason(result)
    assert "Next: ship." in reason(result)
    assert "I loading" not in reason(result)


@pytest.mark.parametrize(
    ("result", "log"),
    [
        ("132", []),
        ("11", ["Error: The engine (armv8.2-dotprod) ended before it was ready: signal SIGILL. Its last lines:"]),
        ("1", ["qemu: uncaught target signal 4 (Illegal instruction) - core dumped"]),
    ],
)
def test_an_illegal_instruction_is_called_that(result: str, log: list[str]) -> None:
    text = reason(verdict(serve=step("serve", result=result), log=step("log", output=log)))
    assert "illegal instruction under cortex-a76" in text


def test_a_hint_that_names_a_signal_is_not_that_signal() -> None:
    log = [
        "Error: The engine ended before it was ready: signal SIGABRT.",
        "Next: SIGILL means that this CPU lacks it.",
    ]
    text = reason(verdict(serve=step("serve", result="11"), log=step("log", output=log)))
    assert "illegal instruction" not in text
    assert "SIGABRT" in text


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"install": step("install", result="9", output=["runtime/x: FAILED"])}, "exit code 9: runtime/x: FAILED"),
        ({"install": step("install", result="143", output=["Checking"])}, "not done after"),
        ({"install": step("install", result="139")}, "SIGSEGV"),
        ({"serve": step("serve", result="late"), "log": step("log", output=["loading"])}, "Last words: loading"),
        ({"models": step("models", output=['{"data":[{"id":"other"}]}'])}, "“mini-model”"),
        ({"models": step("models", output=["<html>"])}, "<html>"),
        ({"models": step("models", result="1")}, "exit code 1"),
        (
            {"selftest": step("selftest", output=selftest(1.0, 0.42))},
            "“text 1” is not the unquantized model's: cosine",
        ),
        ({"selftest": step("selftest", output=selftest(chats=[3.0]))}, "3 characters equal, needed 8"),
        ({"selftest": step("selftest", output=selftest())}, "compared nothing"),
        ({"selftest": step("selftest", output=["Error: no service"], result="11")}, "Error: no service"),
        ({"selftest": step("selftest", output=selftest(1.0), result="11")}, "“selftest” ended with exit code 11"),
        ({"status": step("status", output=["Error: not ready"], result="11")}, "“status” ended with exit code 11"),
        ({"stop": step("stop", result="137")}, "exit code 137"),
        ({"rest": step("rest", output=["process llama-server ", "socket /tmp/left"])}, "process llama-server"),
    ],
)
def test_every_failure_says_where_and_what(changed: dict[str, list[str]], words: str) -> None:
    assert words in reason(verdict(True, (), **changed))


def test_the_first_failure_is_the_reason() -> None:
    result = verdict(
        install=step("install", result="9"),
        rest=step("rest", output=["process sh"]),
    )
    assert "install" in reason(result)
    assert [check.name for check in result.checks if not check.ok] == ["install", "rest"]


def test_a_rehearsal_that_broke_off_never_passes() -> None:
    cut = tuple(good())[4:]
    result = verdict(False, cut)
    assert "broke off in step “models”" in reason(result)


@pytest.mark.parametrize("name", ["machine", "serve", "models", "selftest", "stop", "rest"])
def test_a_rehearsal_that_left_out_a_step_never_passes(name: str) -> None:
    result = verdict(True, (name,))
    assert "broke off" in reason(result)
    assert all(check.ok for check in result.checks)


def test_the_servers_own_judgement_is_not_taken_over() -> None:
    lying = [line.replace('"score": 0.5', '"score": 0.5, "ok": true') for line in selftest(0.5)]
    assert "cosine 0.5000, needed 0.99" in reason(verdict(selftest=step("selftest", output=lying)))


def test_words_of_the_error_stream_may_stand_before_the_answers() -> None:
    noisy = ["warning: slow", *selftest(1.0)]
    assert verdict(selftest=step("selftest", output=noisy)).failure is None


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (["Loading m with the armv8.2-dotprod engine on 2 threads."], "armv8.2-dotprod"),
        (["引擎变体 armv8.2-dotprod-fp16，2 个线程"], "armv8.2-dotprod-fp16"),
        (["nothing"], None),
    ],
)
def test_the_variant_is_read_from_the_log(log: list[str], expected: str | None) -> None:
    assert variant_taken(log, ["armv8.0", "armv8.2-dotprod", "armv8.2-dotprod-fp16"]) == expected


def test_last_words_without_an_error_are_the_last_lines() -> None:
    assert last_words(["a", "", "b", "c", " d "]) == "b | c | d"
    assert last_words([]) == ""
