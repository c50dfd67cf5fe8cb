"""``--target this`` under limits that the kernel really sets: affinity, CPU quota and memory of a control group."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.fakes.tiny_models import llama_gguf

pytestmark = pytest.mark.integration
GIB = 1 << 30
_PLAN = """
import sys
from pathlib import Path
for group in sys.argv[1].split(","):
    if group: Path(group, "cgroup.procs").write_text(str(__import__("os").getpid()))
from tests.fakes.models import SMOLLM2
from sampan.plan.planner import make_plan
from sampan.spec.codec import to_json
from sampan.survey.machine import survey_this
print(to_json(make_plan(SMOLLM2, survey_this())))
"""


def _plan(groups: tuple[Path, ...] = (), cpus: set[int] | None = None) -> dict[str, object]:
    """Planned in a process of its own that sits in these groups."""
    argv = [sys.executable, "-c", _PLAN, ",".join(map(str, groups))]
    bound = (lambda: os.sched_setaffinity(0, cpus)) if cpus else None
    done = subprocess.run(
        argv, cwd=Path(__file__).parents[2], preexec_fn=bound, capture_output=True, text=True, check=True
    )
    found: dict[str, object] = json.loads(done.stdout)
    return found


def _threads(plan: dict[str, object]) -> object:
    settings = plan["settings"]
    assert isinstance(settings, dict)
    return settings["threads"]


@contextmanager
def _group(controller: str, **values: str) -> Iterator[Path]:
    """A control group of version 1 or 2; skips where none can be made."""
    top = Path("/sys/fs/cgroup")
    is_second = (top / "cgroup.controllers").is_file()
    path = (top if is_second else top / controller) / f"sampan-{uuid.uuid4().hex[:8]}"
    try:
        path.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        for name, value in values.items():
            first, second = name.split("__")
            file = path / (second if is_second else first).replace("_", ".", 1)
            if file.exists():
                file.write_text(value.split("|")[is_second], encoding="ascii")
        yield path
    except OSError as error:
        pytest.skip(f"this control group cannot be limited: {error}")
    finally:
        with suppress(OSError):
            path.rmdir()


def test_affinity_bounds_the_threads() -> None:
    allowed = sorted(os.sched_getaffinity(0))
    assert _threads(_plan(cpus={allowed[-1]})) == 1
    if len(allowed) > 1:
        assert _threads(_plan(cpus=set(allowed[:2]))) in (1, 2)  # 1 where both are of one core


def test_a_quota_is_floored() -> None:
    with _group("cpu", cpu_cfs_quota_us__cpu_max="150000|150000 100000") as group:
        assert _threads(_plan((group,))) == 1


def test_a_memory_limit_is_what_may_be_used() -> None:
    with _group("memory", memory_limit_in_bytes__memory_max=f"{GIB}|{GIB}") as group:
        plan = _plan((group,))
    assert plan["memory_available_bytes"] == GIB
    assert isinstance(plan["memory_total_bytes"], int)
    assert plan["memory_total_bytes"] <= GIB


def test_the_verb_plans_for_this_machine(tmp_path: Path) -> None:
    weights = llama_gguf(tmp_path / "m.gguf")
    argv = [sys.executable, "-m", "sampan", "plan", "-w", str(weights), "-t", "this", "--memory", "2G", "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    plan = json.loads(done.stdout)
    assert (plan["target"], plan["memory_available_bytes"]) == ("this", 2 * GIB)
    assert plan["settings"]["longest"] == 63
