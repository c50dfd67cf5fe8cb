"""The CPU of a survey block: by the same parser as a /proc/cpuinfo, by the same tables as the direct survey."""

from __future__ import annotations

from dataclasses import replace

from sampan.errors import IncompatibleError
from sampan.spec.target import CpuFacts
from sampan.survey import cpuinfo, elf, features, probe, script
from sampan.survey.fields import Fields, decoded


def architecture(abi: str, where: str) -> str:
    """``abi``: the bytes 4, 5, 18 and 19 of an ELF header as hexadecimal text."""
    given = bytes.fromhex(abi)
    if len(given) != 4:
        raise IncompatibleError("survey.userland", root=where)
    found = elf.kind(b"\x7fELF" + given[:2] + bytes(12) + given[2:])
    if found is None or found.machine is None:
        raise IncompatibleError("survey.userland", root=where)
    return found.machine


def cpu_facts(fields: Fields, arch: str) -> CpuFacts:
    """The names come from the same parser as those of a /proc/cpuinfo."""
    if fields.raw("hw"):
        real = features.aarch64(int(fields.raw("hw") or "0", 16), int(fields.raw("hx") or "0", 16))
    else:
        listed = (decoded(value) for key in ("xu", "fl") for value in fields.all(key))
        real = script.unpack_flags(fields.raw("xf") or "") | frozenset(listed)
    word = "flags" if arch == "x86_64" else "Features"
    lines = {
        word: " ".join(sorted(real)),
        "model name": fields.text("cm"),
        "vendor_id": fields.text("cv"),
        "CPU implementer": fields.text("ci"),
        "CPU part": fields.text("cp"),
    }
    # An emulated machine tells its features, but its /proc/cpuinfo is that of the host: no name there.
    named = any(fields.raw(key) for key in ("cm", "ci", "cv"))
    parsed = cpuinfo.parse("\n".join(f"{key}: {value}" for key, value in lines.items() if value), arch)
    facts = parsed if named else CpuFacts(model=cpuinfo.UNKNOWN_MODEL)
    known = replace(
        facts,
        features=tuple(sorted(real)),
        features_known=bool(real),
        sockets=fields.number("so"),
        cores=fields.number("co"),
        numa_nodes=fields.number("nu"),
        variant=fields.text("ca"),
        revision=fields.text("cr"),
        family=fields.text("cf"),
        model_number=fields.text("cn"),
        stepping=fields.text("cs"),
        allowed=fields.text("al"),
    )
    outcome = probe.packed(fields.raw("pr") or "", arch)
    return probe.applied(known, outcome) if outcome else known
