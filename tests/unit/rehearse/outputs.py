"""What a sandbox prints, put together from steps."""

from __future__ import annotations

import json
from collections.abc import Iterable

from sampan.rehearse.steps import Line

_AUXV = (
    "auxv  0000000000000003 0000000000400040 0000000000000006 0000000000010000 "
    "0000000000000010 0000000000119ffb 0000000000000000 0000000000000000"
)
MACHINE = [
    "aarch64",
    "uid=1000 gid=1000 groups=1000",
    "NoNewPrivs:\t1",
    "interfaces lo ",
    _AUXV,
    "root bin dev home media proc steps.sh tmp usr ",
    "dev full null random shm tty urandom zero ",
]
READY_LOG = ["armv8.2-dotprod-fp16 engine on some CPU with 2 threads", "ready"]


def step(name: str, command: str = "", output: Iterable[str] = (), result: str = "0") -> list[str]:
    """The lines of one step."""
    return ["", f"@begin {name} {command}".rstrip(), *output, "", f"@end {name} {result}"]


def selftest(*scores: float, chats: Iterable[float] = ()) -> list[str]:
    """What ``selftest --json`` prints."""
    return json.dumps(
        {
            "schema": "sampan/self-test/1",
            "embeddings": [
                {"text": f"text {i}", "score": s, "minimum": 0.99, "ok": True} for i, s in enumerate(scores)
            ],
            "chats": [{"text": f"prompt {i}", "score": s, "minimum": 8.0, "ok": True} for i, s in enumerate(chats)],
        },
        indent=2,
    ).splitlines()


def good() -> dict[str, list[str]]:
    """All steps of a rehearsal that passed, by name and in order; replace one to make it fail."""
    return {
        "machine": step("machine", output=MACHINE),
        "install": step("install", "./install.sh", ["Checking", "✓ Copied"]),
        "serve": step("serve", "./sampan serve &", result="ready"),
        "models": step("models", "wget", ['{"data":[{"id":"mini-model"}]}']),
        "selftest": step("selftest", "./sampan selftest --json", selftest(0.99987, 1.0)),
        "status": step("status", "./sampan status --json", ["{}"]),
        "stop": step("stop", "kill -TERM"),
        "log": step("log", output=READY_LOG),
        "rest": step("rest"),
    }


def lines(steps: dict[str, list[str]], *, made: bool = True, done: bool = True) -> list[Line]:
    """The whole output; a second passes with every line."""
    texts = ["@pid 4711", *(["@made"] if made else [])]
    for block in steps.values():
        texts += block
    texts += ["@done"] if done else []
    return [Line(float(number), text) for number, text in enumerate(texts)]
