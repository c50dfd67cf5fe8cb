"""One profile as a table of rows. Unknown is said as unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from sampan import i18n
from sampan.cli import output
from sampan.cli.sizes import show_size

if TYPE_CHECKING:
    from sampan.spec.target import CpuFacts, DiskFacts, GpuFacts, TargetProfile

Row = tuple[str, ...]


def facts(profile: TargetProfile) -> Table:
    """The profile as rows; what is not known of a machine that was surveyed is said, too."""
    rows = [*_basics(profile), *_machine(profile), *_programs(profile), *_surroundings(profile)]
    return output.facts_table(profile.name, rows)


def _or_unknown(value: object) -> str:
    return i18n.text("word.unknown") if value is None or value == "" else str(value)


def _size(count: int | None) -> str:
    return _or_unknown(None if count is None else show_size(count))


def _row(key: str, value: str) -> Row:
    return (i18n.text(f"row.{key}"), value)


def _basics(profile: TargetProfile) -> list[Row]:
    cpu = profile.cpu
    floor = "" if cpu.features_known else f" {i18n.text('cli.survey.floor')}"
    numbers = " / ".join(_or_unknown(count) for count in (cpu.sockets, cpu.cores, cpu.numa_nodes))
    return [
        _row("system", f"{profile.os.name} {profile.os.version}".strip()),
        _row("kernel", _or_unknown(profile.os.kernel)),
        _row(
            "arch",
            profile.arch
            if profile.kernel_arch in (None, profile.arch)
            else f"{profile.arch} ({profile.kernel_arch})",
        ),
        _row("page", f"{profile.page_size >> 10} KiB"),
        ("CPU", cpu.model),
        _row("features", " ".join(cpu.features) + floor),
        *_probed(cpu),
        _row("topology", numbers),
        _row("allowed", _or_unknown(cpu.allowed)),
    ]


def _probed(cpu: CpuFacts) -> list[Row]:
    """What the probe found; nothing of a CPU that is known by its name only."""
    if cpu.probe is None:
        return [_row("false-claims", i18n.text("cli.survey.not-probed"))]
    return [
        _row("false-claims", _or_none(" ".join(cpu.probe.false_claims))),
        _row("unclaimed", _or_none(" ".join(cpu.probe.unclaimed))),
    ]


def _or_none(text: str) -> str:
    return text or i18n.text("cli.survey.none-found")


def _machine(profile: TargetProfile) -> list[Row]:
    quota = profile.cpu_quota
    limit = "-" if profile.cgroup and profile.memory_limit_bytes is None else _size(profile.memory_limit_bytes)
    limits = profile.limits
    words = (f"{name} {_limit(value)}" for name, value in vars(limits).items())
    return [
        _row("memory", _size(profile.memory_bytes)),
        *([_row("available", _size(profile.moment.memory_available_bytes))] if profile.moment else []),
        _row("swap", _size(profile.swap_bytes)),
        _row("quota", f"{'-' if quota is None else quota} / {limit}"),
        _row("limits", ", ".join(words)),
        *(_row("disk", _disk(disk)) for disk in profile.disks),
    ]


def _limit(value: int | None) -> str:
    return i18n.text("word.unlimited") if value == -1 else _or_unknown(value)


def _disk(disk: DiskFacts) -> str:
    marks = {"noexec": disk.noexec, "nosuid": disk.nosuid, "ro": disk.read_only}
    words = (disk.path, disk.filesystem, *(name for name, is_set in marks.items() if is_set), _size(disk.free_bytes))
    return " ".join(words)


def _programs(profile: TargetProfile) -> list[Row]:
    libc = profile.libc
    return [
        ("glibc", _or_unknown(libc.glibc)),
        ("GLIBCXX / CXXABI", f"{_or_unknown(libc.glibcxx)} / {_or_unknown(libc.cxxabi)}"),
        ("GOMP", _or_unknown(libc.gomp)),
        *([] if profile.libraries is None else [_row("libraries", _or_none(" ".join(profile.libraries)))]),
        ("systemd", _or_unknown(profile.systemd)),
        _row("init", _or_unknown(profile.init)),
        ("Python", _or_unknown(profile.python)),
        ("OpenSSL / OpenSSH", f"{_or_unknown(profile.openssl)} / {_or_unknown(profile.openssh)}"),
        ("tar", _or_unknown(profile.tar)),
    ]


def _surroundings(profile: TargetProfile) -> list[Row]:
    guards = ", ".join(f"{name} {_or_unknown(state)}" for name, state in vars(profile.security).items())
    rows = [_row("security", guards), *_cards(profile)]
    if profile.user:
        sudo = {True: "sudo", False: "-sudo", None: "sudo?"}[profile.user.sudo]
        rows.append(
            _row("user", f"{profile.user.name} ({profile.user.uid}) {' '.join((*profile.user.groups, sudo))}")
        )
    if profile.proxies is not None:
        rows.append(_row("proxies", " ".join(profile.proxies) or "-"))
    if profile.moment:
        ports = profile.moment.listening_ports
        rows.append(_row("ports", _or_unknown(None if ports is None else " ".join(map(str, ports)) or "-")))
        rows.append(_row("clock", f"{profile.moment.utc}, {_or_unknown(profile.locale)}"))
    return rows


def _cards(profile: TargetProfile) -> list[Row]:
    """Accelerators and their device nodes; that a machine which was looked at has none is said."""
    rows: list[Row] = [("GPU", " ".join(filter(None, _card(gpu)))) for gpu in profile.gpus]
    if profile.npus:
        rows.append(("NPU", f"{profile.npus.count} x {_or_unknown(profile.npus.name)} {profile.npus.driver or ''}"))
    if not rows and profile.moment:
        rows.append(("GPU / NPU", i18n.text("cli.survey.none-found")))
    for one in profile.devices:
        word = i18n.text("cli.survey.usable" if one.usable else "cli.survey.not-usable")
        rows.append(_row("device", f"{one.path} {one.mode} {one.owner}:{one.group}, {word}"))
    return rows


def _card(gpu: GpuFacts) -> tuple[str, ...]:
    memory = "" if gpu.memory_bytes is None else show_size(gpu.memory_bytes)
    capability, driver = (_or_unknown(fact) for fact in (gpu.compute_capability, gpu.driver))
    return gpu.name, f"sm {capability},", f"driver {driver}", memory
