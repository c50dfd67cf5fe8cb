"""From the fields of a survey block to a profile. The same parsers as of the direct survey judge them."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import unquote

from sampan.errors import BadInputError, IncompatibleError
from sampan.spec.target import (
    CpuFacts,
    DeviceFacts,
    DiskFacts,
    GpuFacts,
    LibcFacts,
    LimitsFacts,
    Moment,
    NpuFacts,
    OsFacts,
    SecurityFacts,
    Source,
    TargetProfile,
    UserFacts,
)
from sampan.survey import block, cpuinfo, elf, features, script

# Keys of the block that this reader understands; others (of a newer script) are kept in the profile as they are.
_KNOWN = frozenset(
    re.findall(
        r"\w+",
        "ab m k oi on ov pg cm cv cf cn cs ci cp ca cr xf xu hw hx fl so co nu al cg cq ml mt ma sw lm ln lp "
        "gc gx ga go py ss sh ta sy in se aa ky fa u px lc t g n d v p z",
    )
)


class _Fields:
    """Fields by key; a key may occur several times."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self.pairs = pairs

    def all(self, key: str) -> list[str]:
        return [value for name, value in self.pairs if name == key]

    def raw(self, key: str) -> str | None:
        return next(iter(self.all(key)), None)

    def text(self, key: str) -> str | None:
        raw = self.raw(key)
        return decoded(raw) if raw else None

    def number(self, key: str, unit: int = 1) -> int | None:
        raw = self.raw(key)
        return int(raw) * unit if raw and raw != "none" else None


def profile(text: str, *, name: str, where: str) -> TargetProfile:
    """The profile in a pasted text. Raises BadInputError (see ``block.read``; ``survey.block-field``), and
    IncompatibleError ``survey.userland`` where the programs there are of no kind that is known here."""
    fields = _Fields(block.read(text, where))
    try:
        return _profile(fields, name, where)
    except (ValueError, IndexError) as error:
        raise BadInputError("survey.block-field", path=where, detail=str(error)) from error


def decoded(value: str) -> str:
    """The script's ``enc`` turned back."""
    if value.startswith("%x"):
        return bytes.fromhex(value[2:]).decode("utf-8", "replace")
    return unquote(value.replace("_", " "))


def _profile(fields: _Fields, name: str, where: str) -> TargetProfile:
    arch = _arch(fields.raw("ab") or "", where)
    proxies = fields.raw("px")
    page = fields.number("pg")
    if page is None:
        raise BadInputError("survey.block-field", path=where, detail="pg")
    return TargetProfile(
        name=name,
        arch=arch,
        os=OsFacts(
            id=fields.text("oi") or "linux",
            name=fields.text("on") or "Linux",
            version=fields.text("ov") or "",
            kernel=fields.text("k"),
        ),
        cpu=_cpu(fields, arch),
        page_size=page,
        libc=LibcFacts(fields.text("gc"), fields.text("gx"), fields.text("ga"), fields.text("go")),
        memory_bytes=fields.number("mt", 1024),
        memory_limit_bytes=fields.number("ml"),
        cpu_quota=_quota(fields.raw("cq")),
        systemd=fields.number("sy"),
        cgroup=fields.number("cg"),
        python=fields.text("py"),
        openssh=fields.text("sh"),
        openssl=fields.text("ss"),
        gpus=tuple(_gpu(value) for value in fields.all("g")),
        npus=_npus(fields.raw("n")),
        devices=_devices(fields.all("v")),
        kernel_arch=fields.text("m"),
        swap_bytes=fields.number("sw", 1024),
        limits=LimitsFacts(fields.number("lm"), fields.number("ln"), fields.number("lp")),
        disks=_disks(fields.all("d")),
        security=SecurityFacts(fields.text("se"), fields.text("aa"), fields.text("ky"), fields.text("fa")),
        tar=fields.text("ta"),
        init=fields.text("in"),
        user=_user(fields.raw("u")),
        proxies=None if proxies is None else tuple(decoded(proxies).split()),
        locale=fields.text("lc"),
        moment=_moment(fields),
        sources=(Source(fact="*", check="S", where="the survey script, run on the machine"),),
        extra=_unknown(fields),
    )


def _unknown(fields: _Fields) -> dict[str, object]:
    """What a newer script says, and that fields were dropped to keep the block small."""
    kept = {key: fields.all(key) for key, _ in fields.pairs if key not in _KNOWN}
    dropped = fields.number("z")
    return {**({"survey": kept} if kept else {}), **({"survey_dropped": dropped} if dropped else {})}


def _arch(abi: str, where: str) -> str:
    """``abi``: the bytes 4, 5, 18 and 19 of an ELF header as hexadecimal text."""
    given = bytes.fromhex(abi)
    if len(given) != 4:
        raise IncompatibleError("survey.userland", root=where)
    found = elf.kind(b"\x7fELF" + given[:2] + bytes(12) + given[2:])
    if found is None or found.machine is None:
        raise IncompatibleError("survey.userland", root=where)
    return found.machine


def _cpu(fields: _Fields, arch: str) -> CpuFacts:
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
    return replace(
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


def _quota(raw: str | None) -> float | None:
    quota, _, period = (raw or "").partition("/")
    return int(quota) / int(period) if period and int(period) else None


def _parts(value: str, count: int) -> list[str]:
    """The decoded parts of a composite value, at least so many."""
    parts = [decoded(part) for part in value.split(",")]
    return parts + [""] * (count - len(parts))


def _gpu(value: str) -> GpuFacts:
    name, capability, driver, mebibytes = _parts(value, 4)[:4]
    memory = int(mebibytes) << 20 if mebibytes.isdigit() else None
    return GpuFacts(name=name, compute_capability=capability or None, driver=driver or None, memory_bytes=memory)


def _npus(value: str | None) -> NpuFacts | None:
    if value is None:
        return None
    count, name, driver = _parts(value, 3)[:3]
    return NpuFacts(count=int(count), name=name or None, driver=driver or None)


def _devices(values: list[str]) -> tuple[DeviceFacts, ...]:
    """A node without rights of its own has those of the one before."""
    found: list[DeviceFacts] = []
    for value in values:
        path, mode, owner, group, usable = _parts(value, 5)[:5]
        device = DeviceFacts(path, mode, owner, group, usable == "yes")
        found.append(replace(found[-1], path=path) if not mode and found else device)
    return tuple(found)


def _disks(values: list[str]) -> tuple[DiskFacts, ...]:
    """A folder whose mount was described before names only that mount."""
    found: dict[str, DiskFacts] = {}
    disks = []
    for value in values:
        path, mount, filesystem, options, size, free = _parts(value, 6)[:6]
        if filesystem:
            found[mount] = DiskFacts(
                path=path,
                mount=mount,
                filesystem=filesystem,
                noexec="e" in options,
                nosuid="s" in options,
                read_only="r" in options,
                size_bytes=int(size) * 1024 if size else None,
                free_bytes=int(free) * 1024 if free else None,
            )
        if mount in found:
            disks.append(replace(found[mount], path=path))
    return tuple(disks)


def _user(value: str | None) -> UserFacts | None:
    if value is None:
        return None
    name, uid, groups, sudo = _parts(value, 4)[:4]
    return UserFacts(name, int(uid), tuple(groups.split("+")) if groups else (), {"yes": True, "no": False}.get(sudo))


def _moment(fields: _Fields) -> Moment | None:
    utc, ports = fields.text("t"), fields.raw("p")
    if utc is None:
        return None
    listening = None if ports is None else tuple(int(port) for port in ports.split(",") if port)
    return Moment(utc=utc, memory_available_bytes=fields.number("ma", 1024), listening_ports=listening)
