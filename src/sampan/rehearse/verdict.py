"""From what the sandbox printed to checks and to the one reason that matters most."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sampan.rehearse.failure import Failure, last_words, outcome, unfinished, why
from sampan.rehearse.machine import Way
from sampan.rehearse.steps import Machine, Record, Step, machine
from sampan.spec.artefacts import Check
from sampan.spec.plan import Plan
from sampan.spec.target import TargetProfile

REHEARSAL = ("machine", "install", "serve", "models", "selftest", "status", "stop", "rest")
SESSION = ("machine", "serve", "stop", "rest")


@dataclass(frozen=True)
class Verdict:
    """All checks in the order of the steps; ``failure`` None means that the bundle proved itself."""

    checks: tuple[Check, ...]
    failure: Failure | None


@dataclass(frozen=True)
class _Judged:
    check: Check
    failure: Failure | None = None


def judge(record: Record, profile: TargetProfile, plan: Plan, way: Way, needed: Sequence[str] = REHEARSAL) -> Verdict:
    """Every check of one rehearsal. The first failure in the order of the steps is the reason.

    ``needed``: steps without which nothing is proved, whatever the others say.
    """
    judged = [*_surroundings(record, profile, way), *_steps(record, plan, way)]
    failures = [item.failure for item in judged if item.failure]
    whole = record.done and all(record.step(name) for name in needed)
    if not whole and not failures:
        failures = [unfinished(record)]
    return Verdict(tuple(item.check for item in judged), failures[0] if failures else None)


def _surroundings(record: Record, profile: TargetProfile, way: Way) -> Iterable[_Judged]:
    """Was it the sandbox that we promise? If not, whatever ran proves nothing."""
    step = record.step("machine")
    if step is None:
        return
    seen = machine(step)
    cpu = way.cpu
    right_cpu = seen.arch == profile.arch and cpu.hwcap in (0, seen.hwcap)
    yield _surrounding("cpu", right_cpu, _cpu(seen, way))
    # A native run has this machine's pages; the transcript says where they differ from the target's.
    right_page = seen.page_size == profile.page_size or not cpu.emulated
    yield _surrounding("page-size", right_page, f"{seen.page_size} bytes")
    yield _surrounding("network", seen.interfaces == ("lo",), " ".join(seen.interfaces) or "none")
    plain = seen.user != "0" and seen.no_new_privs
    yield _surrounding("user", plain, f"uid {seen.user}, no_new_privs {'set' if seen.no_new_privs else 'not set'}")


def _cpu(seen: Machine, way: Way) -> str:
    cpu = way.cpu
    return (
        f"{cpu.name} ({cpu.level}), {seen.arch}, AT_HWCAP {seen.hwcap:#x}" if cpu.emulated else f"native {seen.arch}"
    )


def _surrounding(name: str, ok: bool, detail: str) -> _Judged:
    failure = None if ok else Failure("sandbox", (("check", name), ("detail", detail)))
    return _Judged(Check(name, ok, detail), failure)


def _steps(record: Record, plan: Plan, way: Way) -> Iterable[_Judged]:
    log = record.step("log")
    words = log.output if log else ()
    for step in record.steps:
        if step.name in ("install", "status"):
            yield _ended(step, (), way)
        elif step.name == "serve":
            yield _served(step, words, plan, way)
        elif step.name == "models":
            yield _models(step, plan)
        elif step.name == "selftest":
            yield from _golden(step, words, way)
        elif step.name == "stop":
            yield _stopped(step, words)
        elif step.name == "rest":
            yield _rest(step)


def _ended(step: Step, log: Sequence[str], way: Way) -> _Judged:
    """A command that must end with 0; the service's log may know why it did not."""
    check = Check(step.name, step.ok, outcome(step))
    return _Judged(check, None if step.ok else why(step, log, way))


def _served(step: Step, words: Sequence[str], plan: Plan, way: Way) -> _Judged:
    if not step.ok:
        return _Judged(Check("start", False, outcome(step)), why(step, words, way))
    variant = variant_taken(words, [item.name for item in plan.variants])
    return _Judged(Check("start", True, f"ready, variant {variant}" if variant else "ready"))


def variant_taken(log: Sequence[str], names: Sequence[str]) -> str | None:
    """The variant that the service's log names first, as a whole word."""
    words = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    pattern = re.compile(rf"(?<![A-Za-z0-9.-])(?:{words})(?![A-Za-z0-9-])")
    found = (pattern.search(line) for line in log) if names else ()
    return next((match.group() for match in found if match), None)


def _models(step: Step, plan: Plan) -> _Judged:
    data = _json(step.output)
    try:
        ids = [str(item["id"]) for item in data["data"]]
    except (KeyError, TypeError):
        ids = []
    ok = step.ok and plan.model in ids
    detail = ", ".join(ids) or f"exit code {step.result}"
    failure = (
        None if ok else Failure("models", (("model", plan.model), ("answer", last_words(step.output) or detail)))
    )
    return _Judged(Check("models", ok, detail), failure)


def _golden(step: Step, log: Sequence[str], way: Way) -> Iterable[_Judged]:
    """One check per golden text. The service's own judgement is not taken over: numbers are compared again."""
    data = _json(step.output)
    embeddings, chats, pairs = (_results(data, name) for name in ("embeddings", "chats", "pairs"))
    if not (embeddings or chats or pairs):
        yield _ended(step, log, way)
        if step.ok:
            yield _Judged(Check("golden", False, "nothing was compared"), Failure("golden-none"))
        return
    basis = str(data.get("basis", "golden"))
    for number, result in enumerate(embeddings, start=1):
        yield _compared(f"{basis}-{number}", result, "cosine {:.4f}, needed {:g}")
    for number, result in enumerate(chats, start=1):
        yield _compared(f"{basis}-chat-{number}", result, "{:.0f} characters equal, needed {:.0f}")
    for number, result in enumerate(pairs, start=1):
        yield _compared(f"{basis}-pair-{number}", result, "score's closeness {:.4f}, needed {:g}")
    if not step.ok:
        yield _ended(step, log, way)


def _results(data: Any, name: str) -> list[dict[str, Any]]:
    items = data.get(name) if isinstance(data, dict) else None
    return [item for item in items or () if isinstance(item, dict)]


def _compared(name: str, result: dict[str, Any], form: str) -> _Judged:
    score, minimum = float(result.get("score", 0.0)), float(result.get("minimum", 1.0))
    detail = form.format(score, minimum)
    ok = score >= minimum
    failure = Failure("golden", (("text", str(result.get("text", ""))[:60]), ("detail", detail)))
    return _Judged(Check(name, ok, detail), None if ok else failure)


def _stopped(step: Step, log: Sequence[str]) -> _Judged:
    check = Check("stop", step.ok, outcome(step))
    values = (("code", step.result), ("last", last_words(log)))
    return _Judged(check, None if step.ok else Failure("stop", values))


def _rest(step: Step) -> _Judged:
    ok = not step.output
    check = Check("rest", ok, "no process, socket, temporary file or open port" if ok else "; ".join(step.output))
    return _Judged(check, None if ok else Failure("rest", (("left", check.detail),)))


def _json(output: Sequence[str]) -> Any:
    """The JSON document in a command's output; lines of the error stream may stand before it."""
    for start, line in enumerate(output):
        if line.startswith(("{", "[")):
            try:
                return json.JSONDecoder().raw_decode("\n".join(output[start:]))[0]
            except ValueError:
                continue
    return None
