from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sampan import i18n
from sampan.rehearse import cpu, machine
from sampan.rehearse.machine import MachineFacts, Refusal, Registration, Way
from sampan.survey import known

KUNPENG = known.load("kylin-v10-sp3-kunpeng920")
HYGON = known.load("hygon")
REGISTERED = Registration("qemu-aarch64", "b700", True, "PF")
ENTRY = """\
enabled
interpreter /usr/libexec/qemu-binfmt/aarch64-binfmt-P
flags: PF
offset 0
magic 7f454c460201010000000000000000000200b700
mask ffffffffffffff00fffffffffffffffffeffffff
"""
WORKSHOP = MachineFacts(
    arch="x86_64",
    root=True,
    missing_tools=(),
    kernel=(5, 10),
    page_size=4096,
    features=frozenset({"avx2", "avx512f"}),
    qemu="/usr/bin/qemu-aarch64-static",
    binfmt_mounted=True,
    registrations=(REGISTERED,),
    user_namespaces=1000,
)


def test_the_machines_own_registration_is_taken_first() -> None:
    way = machine.decide(KUNPENG, WORKSHOP)
    assert isinstance(way, Way)
    assert (way.cpu.name, way.binfmt, way.qemu) == ("cortex-a76", "machine", None)


@pytest.mark.parametrize(
    ("change", "key", "words"),
    [
        ({"root": False}, "root", "sudo"),
        ({"missing_tools": ("unshare", "setpriv")}, "tools", "unshare, setpriv"),
        ({"registrations": (), "qemu": None}, "qemu", "qemu-user-static"),
        ({"registrations": (), "binfmt_mounted": False}, "binfmt-unmounted", "mount -t binfmt_misc"),
        ({"registrations": ()}, "binfmt", r":qemu-aarch64:M::\x7f\x45\x4c\x46"),
        ({"registrations": (replace(REGISTERED, flags="P"),)}, "binfmt-flags", ":/usr/bin/qemu-aarch64-static:PF"),
        ({"registrations": (replace(REGISTERED, enabled=False),)}, "binfmt-flags", "disabled"),
        ({"registrations": (replace(REGISTERED, machine="f300"),)}, "binfmt", "update-binfmts --enable qemu-aarch64"),
    ],
)
def test_what_is_missing_is_named_with_the_way_to_get_it(change: dict[str, object], key: str, words: str) -> None:
    found = machine.decide(KUNPENG, replace(WORKSHOP, **change))  # type: ignore[arg-type]
    assert isinstance(found, Refusal)
    assert found.key == key
    assert words in i18n.text(f"rehearse.skip.{key}", **dict(found.values))


def test_a_newer_kernel_needs_no_registration_of_the_machine() -> None:
    found = machine.decide(KUNPENG, replace(WORKSHOP, registrations=(), binfmt_mounted=False, kernel=(6, 7)))
    assert isinstance(found, Way)
    assert (found.binfmt, found.qemu) == ("private", "/usr/bin/qemu-aarch64-static")
    forbidden = replace(WORKSHOP, registrations=(), kernel=(6, 7), user_namespaces=0)
    assert isinstance(machine.decide(KUNPENG, forbidden), Refusal)


def test_a_target_with_less_than_this_cpu_is_emulated_where_that_is_possible() -> None:
    newer = replace(WORKSHOP, kernel=(6, 12), qemu="/usr/bin/qemu-x86_64-static", features=_avx512())
    emulated = machine.decide(HYGON, newer)
    assert isinstance(emulated, Way)
    assert (emulated.cpu.name, emulated.binfmt) == ("Haswell", "private")
    older = machine.decide(HYGON, replace(newer, kernel=(5, 10)))
    assert isinstance(older, Way)
    assert (older.cpu.name, older.cpu.exceeds) == ("native", ("avx512f",))


def test_a_target_that_can_all_that_this_cpu_can_runs_natively() -> None:
    same = replace(WORKSHOP, features=frozenset(HYGON.cpu.features))
    found = machine.decide(HYGON, same)
    assert isinstance(found, Way)
    assert (found.cpu.name, found.binfmt, found.cpu.exceeds) == ("native", "none", ())


def test_an_architecture_that_nothing_emulates_is_refused() -> None:
    found = machine.decide(replace(KUNPENG, arch="loongarch64"), WORKSHOP)
    assert isinstance(found, Refusal)
    assert found.key == "arch"


def test_facts_are_read_below_a_root(tmp_path: Path) -> None:
    files = {
        "proc/sys/fs/binfmt_misc/qemu-aarch64": ENTRY,
        "proc/sys/fs/binfmt_misc/status": "enabled\n",
        "proc/sys/fs/binfmt_misc/register": "",
        "proc/sys/user/max_user_namespaces": "4096\n",
        "proc/sys/kernel/osrelease": "5.15.0-91-generic\n",
        "proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu avx2\n\nprocessor\t: 1\nflags\t\t: fpu\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    facts = machine.look("aarch64", tmp_path, which=lambda tool: None if tool == "setpriv" else f"/bin/{tool}")
    assert facts.registrations == (REGISTERED,)
    assert (facts.kernel, facts.user_namespaces, facts.binfmt_mounted) == ((5, 15), 4096, True)
    assert (facts.features, facts.missing_tools) == (frozenset({"fpu", "avx2"}), ("setpriv",))
    assert facts.qemu == "/bin/qemu-aarch64-static"


def test_a_machine_without_these_files_has_nothing(tmp_path: Path) -> None:
    facts = machine.look("aarch64", tmp_path, which=lambda _: None)
    assert (facts.registrations, facts.binfmt_mounted, facts.kernel) == ((), False, (0, 0))
    assert facts.missing_tools == machine.TOOLS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ENTRY.replace("enabled", "disabled"), Registration("x", "b700", False, "PF")),
        (ENTRY.replace("flags: PF", "flags: "), Registration("x", "b700", True, "")),
        (ENTRY.replace("offset 0", "offset 4"), Registration("x", "", True, "PF")),
        ("enabled\ninterpreter /usr/bin/python3\nflags: \noffset 0\nmagic 550d\n", Registration("x", "", True, "")),
        ("", Registration("x", "", False, "")),
    ],
)
def test_registrations_are_read_as_the_kernel_prints_them(text: str, expected: Registration) -> None:
    assert machine.parse_registration("x", text) == expected


def _avx512() -> frozenset[str]:
    return next(item.features for item in cpu.table().cpus if item.name == "Haswell") | {"avx512f"}
