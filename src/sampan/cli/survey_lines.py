"""What ``sampan survey`` shows: one profile, the known ones, or where two differ. Unknown is said as unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from sampan import i18n
from sampan.cli import output
from sampan.cli.sizes import show_size

if TYPE_CHECKING:
    from sampan.spec.target import DiskFacts, TargetProfile

Row = tuple[str, ...]


def known() -> None:
    """The table, or the JSON, of the known targets."""
    from sampan.survey import known as targets

    if output.wants_json():
        output.print_json({"schema": "sampan/targets/1", "targets": list(targets.names())})
        return
    profiles = ((name, targets.load(name)) for name in targets.names())
    rows = [(name, profile.arch, profile.os.name, profile.cpu.model) for name, profile in profiles]
    output.console().print(output.facts_table(i18n.text("cli.survey.known"), rows))


def differences(name_a: str, name_b: str, a: TargetProfile, b: TargetProfile) -> None:
    """The table, or the JSON, of what two profiles say differently."""
    from dataclasses import asdict

    from sampan.survey.diff import differences as compare

    found = compare(a, b)
    if output.wants_json():
        told = [asdict(difference) for difference in found]
        output.print_json({"schema": "sampan/target-diff/1", "a": name_a, "b": name_b, "differences": told})
        return
    if not found:
        output.console().print(i18n.text("cli.survey.same"), markup=False)
        return
    unknown = i18n.text("word.unknown")
    rows = [(one.fact, unknown if one.a is None else one.a, unknown if one.b is None else one.b) for one in found]
    output.console().print(output.facts_table(i18n.text("cli.survey.diff"), rows, ("", name_a, name_b)))


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
        _row("arch", profile.arch),
        _row("page", f"{profile.page_size >> 10} KiB"),
        ("CPU", cpu.model),
        _row("features", " ".join(cpu.features) + floor),
        _row("topology", numbers),
    ]


def _machine(profile: TargetProfile) -> list[Row]:
    quota = profile.cpu_quota
    limits = profile.limits
    words = (f"{name} {_limit(value)}" for name, value in vars(limits).items())
    return [
        _row("memory", _size(profile.memory_bytes)),
        _row("swap", _size(profile.swap_bytes)),
        _row("quota", f"{'-' if quota is None else quota} / {_size(profile.memory_limit_bytes)}"),
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
        ("systemd", _or_unknown(profile.systemd)),
        ("Python", _or_unknown(profile.python)),
        ("OpenSSL / OpenSSH", f"{_or_unknown(profile.openssl)} / {_or_unknown(profile.openssh)}"),
        ("tar", _or_unknown(profile.tar)),
    ]


def _surroundings(profile: TargetProfile) -> list[Row]:
    guards = ", ".join(f"{name} {_or_unknown(state)}" for name, state in vars(profile.security).items())
    rows = [_row("security", guards)]
    rows += [("GPU", " ".join(filter(None, (gpu.name, gpu.compute_capability, gpu.driver)))) for gpu in profile.gpus]
    if profile.npus:
        rows.append(("NPU", f"{profile.npus.count} x {_or_unknown(profile.npus.name)} {profile.npus.driver or ''}"))
    rows += [_row("device", f"{one.path} {one.mode} {one.owner}:{one.group}") for one in profile.devices]
    if profile.user:
        rows.append(_row("user", f"{profile.user.name} ({profile.user.uid}) {' '.join(profile.user.groups)}"))
    if profile.proxies is not None:
        rows.append(_row("proxies", " ".join(profile.proxies) or "-"))
    if profile.moment:
        ports = profile.moment.listening_ports
        rows.append(_row("ports", _or_unknown(None if ports is None else " ".join(map(str, ports)) or "-")))
        rows.append(_row("clock", f"{profile.moment.utc}, {_or_unknown(profile.locale)}"))
    return rows
