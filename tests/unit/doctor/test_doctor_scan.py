"""Reading: pieces, places, long lines, encodings, repetition, and what the machine shows."""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.fakes.typed import typed

from sampan.doctor import diagnose, here, knowledge, literals, patterns, pieces, scan, seen, wrapped
from sampan.doctor.conditions import Fact, compare, holds
from sampan.doctor.scan import Scanner
from sampan.errors import MissingToolError
from sampan.spec.ports import Completed

JEMALLOC = b"<jemalloc>: Unsupported system page size\n"


def scanned(raw: bytes) -> scan.Scanned:
    scanner = Scanner()
    scanner.read(io.BytesIO(raw), "log")
    return scanner.found


@pytest.mark.parametrize("size", [100, 7000, 20_000])
def test_places_are_right_whatever_the_pieces(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE", size)
    lines = [b"INFO slot %d is idle, nothing to do\n" % number for number in range(2000)]
    for place in (0, 17, 800, 1500, 1999):
        lines[place] = JEMALLOC
    found = scanned(b"".join(lines))
    assert [hit.evidence.line for hit in found.hits] == [1, 18, 801, 1501, 2000]
    assert {hit.evidence.text for hit in found.hits} == {JEMALLOC.decode().strip()}
    assert found.lines == 2000
    assert found.size == sum(map(len, lines))


def test_what_stands_below_a_hit_counts_even_across_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE", 9000)
    filler = b"DEBUG nothing of note happens in this line\n"
    for before in range(150, 260, 7):
        text = filler * before + b"Illegal instruction\n" + b"  by import paddle\n" + filler * 400
        assert "cpu.paddle-avx" in {hit.code for hit in scanned(text).hits}, before


def test_a_line_without_end_costs_no_memory_and_is_still_read() -> None:
    text = b"x" * (1 << 20) + b" " + JEMALLOC.strip() + b" " + b"y" * (1 << 19)
    (hit,) = scanned(text).hits
    assert hit.code == "page.jemalloc"
    assert hit.evidence.line == 1
    assert len(hit.evidence.text) <= 402
    assert JEMALLOC.decode().strip() in hit.evidence.text


def test_binary_rubbish_and_nothing_are_no_fault() -> None:
    assert scanned(b"").hits == []
    assert scanned(bytes(range(256)) * 4000).hits == []
    assert scanned(b"\xff\xfe" + "\u4f60\u597d\n".encode("utf-16-le") * 10).lines == 10


def test_a_flood_of_one_failure_is_counted_and_its_evidence_bounded() -> None:
    found = diagnose.of_text(JEMALLOC * 9_000)
    (finding,) = found.findings
    assert finding.times == 9_000
    assert len(finding.evidence) == 5


def test_the_digits_of_a_line_count() -> None:
    """Forms are remembered without digits; a status that means nothing must not hide one that does."""
    text = "".join(f"job {number} exited with code 0\n" for number in range(50)) + "job 51 exited with code 137\n"
    assert [one.code for one in diagnose.of_text(text).findings] == ["memory.killed"]


def test_every_pattern_is_found_by_its_words() -> None:
    for case in knowledge.cases().values():
        for pattern in case.match:
            for text in case.yes:
                for line in text.splitlines():
                    if patterns.compiled(pattern).search(line):
                        assert any(word in line.lower() for word in literals.words(pattern)), (case.code, line)


def test_a_made_up_log_is_read_fast() -> None:
    line = b"2026-11-30T12:00:%02d.123Z INFO request id=%08x path=/v1/embeddings status=200 tokens=%d ms=3.14\n"
    text = b"".join(line % (number % 60, number * 2654435761 % 2**32, number % 900) for number in range(60_000))
    started = time.process_time()
    assert scanned(text).hits == []
    assert len(text) / (time.process_time() - started) > 10e6  # bytes a second; bench/doctor_speed.py measures


def test_wrapped_lines_are_whole_again() -> None:
    line = "error while loading shared libraries: libllama.so: cannot open shared object file: No such file"
    cut = "\n".join(line[start : start + 40] for start in range(0, len(line), 40))
    joined = wrapped.hard(f"first\n{cut}\nlast\n".encode())
    assert [one.text for one in joined if one.count > 1] == [line]
    assert next(one for one in joined if one.count > 1).line == 2
    assert wrapped.hard(b"short\nlines\n") == ()


@pytest.mark.parametrize(
    ("left", "right", "order"),
    [("2.9", "2.28", -1), ("3.4.25", "3.4.24", 1), ("550", "550.0", 0), ("535.288.01", "550", -1), ("7.0", "7", 0)],
)
def test_versions_are_compared_part_by_part(left: str, right: str, order: int) -> None:
    assert compare(left, right) == order


@pytest.mark.parametrize(
    ("conditions", "verdict"),
    [
        (["page_size > 4096"], True),
        (["page_size > 4096", "driver < 550"], None),
        (["page_size < 4096", "driver < 550"], False),
        (["features has asimddp", "features lacks atomics"], True),
        (["features lacks asimd"], False),
        (["cpu contains kunpeng"], True),
        (["page_size = {wanted}"], True),
        (["nproc > 16384"], False),  # the text's own number goes before the machine's
        (["memlock < 65536"], False),
    ],
)
def test_conditions_are_true_false_or_unknown(conditions: list[str], verdict: bool | None) -> None:
    known = {
        "page_size": Fact("65536", "x"),
        "features": Fact("fp asimd asimddp", "x"),
        "cpu": Fact("Kunpeng 920", "x"),
        "nproc": Fact("unlimited", "x"),
        "memlock": Fact("unlimited", "x"),
    }
    assert holds(conditions, known, {"wanted": "65536", "nproc": "4096"}) is verdict


class Tools:
    """A machine's tools: what each command line prints."""

    def __init__(self, **outputs: str) -> None:
        self.outputs = outputs

    def run(self, argv: Sequence[str], **_: object) -> Completed:
        if argv[0] not in self.outputs:
            raise MissingToolError("tool.missing", tool=argv[0])
        return Completed(tuple(argv), 0, self.outputs[argv[0]])


SHOW = "ActiveState=failed\nResult=oom-kill\nExecMainStatus=9\nNRestarts=3\nMainPID=0\nControlGroup=/svc/bge\n"
JOURNAL = "2026-11-30T12:00:09+0800 k1 systemd[1]: sampan-bge.service: Failed with result 'oom-kill'.\n"


def looked(root: Path, health: here.HealthProbe, environ: dict[str, str], **outputs: str) -> here.Seen:
    machine = here.Machine(Tools(**outputs), health, environ, root)
    return here.look(machine, here.Service(root, "sampan-bge.service", "127.0.0.1", 8080))


def test_the_machine_is_looked_at(tmp_path: Path) -> None:
    for path, text in {
        "proc/self/limits": "Limit   Soft   Hard   Units\nMax locked memory         65536    65536   bytes\n"
        "Max open files            1024     4096    files\nMax processes             unlimited unlimited processes\n",
        "proc/net/tcp": "  sl  local_address rem_address   st\n   0: 0100007F:1F90 00000000:0000 0A 0 0 0 0\n",
        "sys/fs/cgroup/svc/bge/memory.events": "low 0\noom 4\noom_kill 2\n",
        "sys/fs/cgroup/svc/bge/cpu.stat": "usage_usec 1\nnr_periods 200\nnr_throttled 90\n",
        "sys/fs/selinux/enforce": "1",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    found = looked(
        tmp_path,
        lambda _host, _port, by_proxy: "HTTP 503" if by_proxy else "ready",
        {"http_proxy": "http://10.0.0.1:3128"},
        systemctl=SHOW,
        journalctl=JOURNAL,
        getstatus="KySec status: Normal\n\nexec control     : warning\n",
        dmesg="[1.0] usb 1-1: new device\n"
        "[2.0] Out of memory: Killed process 7 (llama-server) total-vm:9kB, anon-rss:2097152kB\n",
    )
    facts = {name: fact.value for name, fact in found.facts.items()}
    assert facts["memlock"] == "65536"
    assert facts["selinux"] == "enforcing"
    assert facts["kysec"] == "warning"
    assert facts["port_owner"] == "ours"
    assert facts["throttled_percent"] == "45"
    assert facts["unit_result"] == "oom-kill"
    result = diagnose.diagnose(found.texts, found.facts)
    codes = {one.code for one in result.findings}
    assert {"memory.oom-kill", "here.oom", "here.throttled", "here.proxy", "here.unit-failed", "here.kysec"} <= codes
    assert next(one for one in result.findings).code == "memory.oom-kill"
    assert next(one for one in result.findings if one.code == "memory.oom-kill").values["rss"] == "2048 MiB"


def test_a_machine_without_tools_and_files_shows_little_and_nothing_false(tmp_path: Path) -> None:
    found = looked(tmp_path, lambda *_: "unreachable", {})
    result = diagnose.diagnose(found.texts, found.facts)
    assert [one.code for one in result.findings if one.severity != "info"] == []
    assert found.facts["kysec"].value == "absent"


def test_a_foreign_listener_is_told_from_ours(tmp_path: Path) -> None:
    (tmp_path / "proc/net").mkdir(parents=True)
    (tmp_path / "proc/net/tcp").write_text("h\n   0: 0100007F:1F90 00000000:0000 0A 0\n")
    found = looked(tmp_path, lambda *_: "HTTP 404", {}, systemctl="ActiveState=inactive\n", journalctl="")
    assert "here.port" in {one.code for one in diagnose.diagnose(found.texts, found.facts).findings}


def test_cgroups_of_version_1_are_read() -> None:
    files = {
        "/sys/fs/cgroup/memory/svc/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n",
        "/sys/fs/cgroup/cpu/svc/cpu.stat": "nr_periods 10\nnr_throttled 1\nthrottled_time 9\n",
        "/sys/fs/cgroup/cpu/svc/cpu.cfs_quota_us": "150000\n",
        "/sys/fs/cgroup/cpu/svc/cpu.cfs_period_us": "100000\n",
    }
    assert seen.cgroups(lambda path: files.get(path, ""), "/svc") == {
        "oom_kills": 5,
        "throttled_percent": 10,
        "cpu_quota": "1.5",
    }


def command(*words: str, stdin: bytes = b"", **environ: str) -> subprocess.CompletedProcess[bytes]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SAMPAN_", "LC_", "LANG"))}
    return subprocess.run(
        [sys.executable, "-m", "sampan", *words],
        input=stdin,
        env={**clean, "COLUMNS": "200", **environ},
        capture_output=True,
        check=False,
    )


def test_the_command_reads_a_pipe_in_chinese() -> None:
    done = command("doctor", "-", "--target", "kylin-v10-sp3-kunpeng920", stdin=JEMALLOC, LANG="zh_CN.UTF-8")
    text = done.stdout.decode()
    assert done.returncode == 0
    assert "page.jemalloc" in text
    assert "65536" in text
    assert "jemalloc/jemalloc#2572" in text


def test_the_command_gives_json_with_exact_lines(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(b"start\n" + JEMALLOC)
    done = command("doctor", str(log), "--json")
    said = json.loads(done.stdout)
    assert said["schema"] == "sampan/diagnosis/1"
    assert said["findings"][0]["evidence"] == [{"source": str(log), "line": 2, "text": JEMALLOC.decode().strip()}]


def test_a_missing_file_and_an_unknown_code_have_their_exit_codes(tmp_path: Path) -> None:
    assert typed("doctor", str(tmp_path / "none.log")) == 3
    assert typed("doctor", "--explain", "no.such") == 2


def test_cases_are_listed_and_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("doctor", "--list", "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert {row["code"] for row in listed["cases"]} == set(knowledge.cases())
    assert typed("doctor", "--explain", "loader.version") == 0
    page = capsys.readouterr().out
    assert "glibc" in page
    assert "ollama/ollama#8085" in page


def test_a_failure_beyond_the_beginning_of_a_long_line_is_found() -> None:
    for before in (1900, 1990, 2500, 3990, 7777):
        (hit,) = scanned(b"x " * (before // 2) + JEMALLOC).hits
        assert (hit.code, hit.evidence.line) == ("page.jemalloc", 1), before


def test_digits_decide_even_among_thousands_of_lines_of_one_form() -> None:
    lines = [f"job {number:05d} exited with code 101\n" for number in range(20_000)]
    lines[15_555] = "job 15555 exited with code 137\n"
    (finding,) = diagnose.of_text("".join(lines)).findings
    assert (finding.code, finding.evidence[0].line) == ("memory.killed", 15_556)


def test_a_special_case_covers_the_general_one_however_often_it_is_there() -> None:
    line = "./s: error while loading shared libraries: libllama.so: cannot open shared object file: No such file\n"
    codes = {one.code for one in diagnose.of_text("".join(f"{number} {line}" for number in range(900))).findings}
    assert codes == {"loader.engine-library"}


WORDS = sorted({word for one in knowledge.cases().values() for each in one.match for word in literals.words(each)})


def test_a_text_made_to_slow_the_doctor_down_is_read_in_bounded_time_and_what_is_left_out_is_told() -> None:
    chance = random.Random(5)
    text = "\n".join(" ".join(chance.choices(WORDS, k=20)) + f" {chance.random()}" for _ in range(4_000))
    started = time.process_time()
    found = diagnose.of_text(text + "\n")
    assert time.process_time() - started < 6  # of which a second of fruitless patterns, whatever the size
    assert found.left_out > 100


@pytest.mark.parametrize(
    "text",
    [
        b"\x1b[" * 200_000,
        b"\x1b]" + b"a" * 300_000,
        bytes(400_000),
        b"\n" * 300_000,
        b"\r" * 300_000,
        b"\xff\xfe" + b"\x0a\x0d" * 100_000,
        random.Random(1).randbytes(400_000),
    ],
    ids=["escapes", "title", "nul", "newlines", "returns", "utf-16", "random"],
)
def test_rubbish_is_read_fast_and_a_failure_after_it_is_found(text: bytes) -> None:
    started = time.process_time()
    found = scanned(
        text + (b"\n" + JEMALLOC if text[:2] != b"\xff\xfe" else f"\n{JEMALLOC.decode()}".encode("utf-16-le"))
    )
    assert time.process_time() - started < 1
    assert [hit.code for hit in found.hits] == ["page.jemalloc"]


@pytest.mark.parametrize(("restarts", "codes"), [("0", set()), ("2", {"memory.oom-kill"})])
def test_what_happened_before_a_steady_service_began_is_history(
    tmp_path: Path, restarts: str, codes: set[str]
) -> None:
    found = looked(
        tmp_path,
        lambda *_: "ready",
        {},
        systemctl=f"ActiveState=active\nNRestarts={restarts}\nInactiveExitTimestampMonotonic=900000000\n",
        journalctl="",
        dmesg="[  812.5] Out of memory: Killed process 7 (llama-server) total-vm:9kB, anon-rss:2097152kB\n",
    )
    result = diagnose.diagnose(found.texts, found.facts)
    assert {one.code for one in result.known} == codes


def test_the_last_words_of_a_program_are_its_own() -> None:
    text = (
        "2026-11-30T12:00:01+0800 k1 sampan[77]: loading: a model\n"
        "2026-11-30T12:00:02+0800 k1 sampan[77]: told to fail\n" + JOURNAL + "-- No entries --\n"
    )
    assert seen.last_words(text) == "loading: a model / told to fail"
    assert seen.last_words("") == ""
