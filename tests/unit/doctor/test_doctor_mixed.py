"""Logs in which much goes wrong: the root first, what follows from it named so, independent causes kept."""

from __future__ import annotations

from itertools import cycle, islice

import pytest

from sampan.doctor import diagnose
from sampan.doctor.conditions import Fact

QUIET = (
    'INFO:     10.0.0.7:51544 - "POST /v1/embeddings HTTP/1.1" 200 OK',
    "slot update_slots: id  3 | task 812 | prompt done, n_tokens = 41",
    "Nov 30 12:00:03 k1 systemd[1]: Started Session 12 of user root.",
    "DEBUG urllib3.connectionpool: Starting new HTTP connection (1): 127.0.0.1:8080",
)
RESTARTS = """\
Nov 30 12:00:04 k1 systemd[1]: bge.service: Main process exited, code=exited, status=1/FAILURE
Nov 30 12:00:04 k1 systemd[1]: bge.service: Failed with result 'exit-code'.
Nov 30 12:00:09 k1 systemd[1]: bge.service: Service RestartSec=5s expired, scheduling restart.
Nov 30 12:00:09 k1 systemd[1]: bge.service: Scheduled restart job, restart counter is at 7.
"""
REFUSED = """\
curl: (7) Failed to connect to 127.0.0.1 port 8080: Connection refused
HTTPConnectionPool(host='127.0.0.1', port=8080): Max retries exceeded with url: /health (Caused by [Errno 111] \
Connection refused)
"""


def quiet(lines: int) -> str:
    return "".join(f"{line}\n" for line in islice(cycle(QUIET), lines))


def roles(text: str, **facts: str) -> dict[str, str]:
    found = diagnose.of_text(text, {name: Fact(value, "profile") for name, value in facts.items()})
    return {one.code: one.role for one in found.findings}


ROOTS = {
    "loader.engine-library": "./llama-server: error while loading shared libraries: libllama.so: "
    "cannot open shared object file: No such file or directory\n",
    "loader.version": "./a: /lib64/libm.so.6: version `GLIBC_2.29' not found (required by ./a)\n",
    "page.jemalloc": "<jemalloc>: Unsupported system page size\nmemory allocation of 24 bytes failed\n",
    "gguf.truncated": "llama_model_load: error loading model: tensor 'blk.1.attn_q.weight' data is not within the "
    "file bounds, model is corrupted or incomplete\nllama_model_load_from_file_impl: failed to load model\n",
    "loader.wrong-architecture": "bash: ./llama-server: cannot execute binary file: Exec format error\n",
    "serve.port-taken": "ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 8080): "
    "address already in use\n",
    "disk.full": "OSError: [Errno 28] No space left on device: '/opt/sampan/bge/log'\n",
    "cuda.driver-too-old": "ggml_cuda_init: failed to initialize CUDA: CUDA driver version is insufficient for CUDA "
    "runtime version\n",
    "memory.oom-kill": "Nov 30 12:00:02 k1 kernel: Out of memory: Killed process 77 (llama-server) "
    "total-vm:18231232kB, anon-rss:15728640kB, file-rss:0kB\n",
    "cpu.trap": "traps: a[9] trap invalid opcode ip:7f215ce3d997 sp:7f error:0 in libllama.so[7f215cdeb000+8f000]\n"
    "./start.sh: line 4: 9 Illegal instruction (core dumped) ./llama-server\n",
}


@pytest.mark.parametrize("root", ROOTS)
def test_the_early_root_comes_before_thousands_of_lines_of_its_consequences(root: str) -> None:
    text = quiet(50) + ROOTS[root] + (quiet(40) + RESTARTS + REFUSED) * 60
    found = roles(text)
    assert next(iter(found)) == root
    assert [code for code, role in found.items() if role == "cause"] == [root]


@pytest.mark.parametrize("root", ROOTS)
def test_the_root_is_first_even_where_the_log_begins_with_its_consequences(root: str) -> None:
    text = (RESTARTS + REFUSED + quiet(40)) * 30 + ROOTS[root] + quiet(500)
    assert next(iter(roles(text))) == root


def test_a_failed_build_is_not_blamed_on_what_did_not_start_afterwards() -> None:
    text = (
        quiet(20)
        + "ggml-quants.c:407:27: error: implicit declaration of function 'vld1q_s8_x4'\n"
        + "make[2]: *** [ggml-quants.c.o] Error 1\nmake: *** [all] Error 2\n"
        + "bash: ./build/bin/llama-server: No such file or directory\n" * 400
        + REFUSED * 200
    )
    assert next(iter(roles(text))) == "build.neon-intrinsics"


def test_the_killed_compiler_is_the_root_of_the_missing_file() -> None:
    text = (
        "c++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.\n"
        "make: *** [all] Error 2\n" + quiet(3000) + "bash: ./llama-server: No such file or directory\n"
    )
    assert next(iter(roles(text))) == "build.compiler-killed"


def test_static_tls_explains_the_name_that_is_missing_later() -> None:
    text = "ImportError: /lib64/libgomp.so.1: cannot allocate memory in static TLS block\n" + quiet(3000)
    text += "NameError: name 'libpaddle' is not defined\n" * 50
    found = roles(text)
    assert next(iter(found)) == "loader.static-tls"
    assert found["python.libpaddle-name"] != "cause"


def test_a_warning_of_the_lock_limit_does_not_hide_a_cut_model() -> None:
    text = (
        "warning: failed to mlock 39813120-byte buffer (after previously locking 0 bytes): Cannot allocate memory\n"
        * 300
        + ROOTS["gguf.truncated"]
    )
    found = roles(text)
    assert list(found)[:1] == ["gguf.truncated"]
    assert found["memory.mlock"] == "cause"


def test_three_independent_causes_are_all_kept_far_apart_and_in_any_order() -> None:
    parts = [ROOTS["serve.port-taken"], ROOTS["disk.full"], ROOTS["loader.version"]]
    for order in (parts, parts[::-1], parts[1:] + parts[:1]):
        found = roles(quiet(2000).join(order) + (RESTARTS * 200))
        assert {code for code, role in found.items() if role == "cause"} == {
            "serve.port-taken",
            "disk.full",
            "loader.version",
        }


def test_old_version_lines_of_the_engine_are_no_cause_beside_an_illegal_instruction() -> None:
    text = "system info: AVX = 1 | AVX2 = 1 | FMA = 1 |\n" + quiet(2000) + ROOTS["cpu.trap"]
    found = roles(text)
    assert next(iter(found)) == "cpu.trap"
    assert found.get("cpu.system-info", "red-herring") != "cause"


def test_a_root_in_a_megabyte_of_one_line_is_found_before_its_consequences() -> None:
    text = " ".join([quiet(4000).replace("\n", " "), ROOTS["loader.version"].strip(), quiet(4000).replace("\n", " ")])
    assert next(iter(roles(text + "\n" + RESTARTS * 100))) == "loader.version"


def test_the_same_failure_in_two_programs_stays_one_finding_with_both_places() -> None:
    text = ROOTS["loader.engine-library"] + quiet(3000) + ROOTS["loader.engine-library"].replace("llama", "mtmd")
    (finding,) = diagnose.of_text(text).findings
    assert [line.line for line in finding.evidence] == [1, 3002]
    assert finding.values["libraries"] == "libllama.so, libmtmd.so"


def test_a_refusal_by_another_machine_stays_a_cause_of_its_own() -> None:
    text = ROOTS["loader.engine-library"] + "curl: (7) Failed to connect to 10.8.0.9 port 443: Connection refused\n"
    assert roles(text) == {"loader.engine-library": "cause", "net.unreachable": "cause"}
    assert roles(REFUSED) == {"serve.not-listening": "cause"}
