"""Everything that stands against an installation, all at once: a pure function of plan, options and facts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sampan import i18n
from sampan.errors import FilesystemError, IncompatibleError, MissingToolError, SampanError
from sampan.install.facts import HostFacts
from sampan.install.model import SCRIPT, SYSTEM, Installed, InstallOptions
from sampan.install.unit import OLDEST_SYSTEMD
from sampan.spec.address import is_loopback
from sampan.spec.plan import Plan

_MIB = 1 << 20
_RIGHTS, _DISK = {"root"}, {"not-writable", "space"}  # by the documented exit codes 5 and 8; all else is 4
_EARLIEST = 1793491200.0  # 2026-11-01: no bundle that this installs is older
_VOLATILE = ("/tmp", "/var/tmp", "/run", "/dev", "/proc", "/sys")  # noqa: S108  (refused, not used)
_TOO_WIDE = ("/", "/opt", "/usr", "/usr/local", "/etc", "/var", "/home", "/root", "/srv", "/bin", "/lib", "/boot")
_UNFIT = set(" \t\n\"'\\$;")  # of a path in a unit file


@dataclass(frozen=True)
class Problem:
    """One catalogue key ``install.problem.<code>`` with its values."""

    code: str
    values: tuple[tuple[str, str], ...] = ()

    def text(self) -> str:
        """What is wrong and what to do, in the language in force."""
        return i18n.text(f"install.problem.{self.code}", **dict(self.values))


def check(plan: Plan, options: InstallOptions, prefix: Path, port: int, facts: HostFacts) -> None:
    """Raise one error with every problem listed, one a line.

    MissingToolError where nothing but rights lack, FilesystemError where nothing but room (and rights) lack, else
    IncompatibleError.
    """
    found = problems(plan, options, prefix, port, facts)
    if found:
        listed = "\n".join(f"  - {problem.text()}" for problem in found)
        codes = {problem.code: None for problem in found}
        error = _error(set(codes))
        raise error("install.preflight", count=len(found), problems=listed, codes=",".join(codes))


def _error(codes: set[str]) -> type[SampanError]:
    if codes <= _RIGHTS:
        return MissingToolError
    return FilesystemError if codes <= _RIGHTS | _DISK else IncompatibleError


def problems(plan: Plan, options: InstallOptions, prefix: Path, port: int, facts: HostFacts) -> tuple[Problem, ...]:
    """All of them, those of the machine first."""
    return (
        *_machine(plan, options, facts),
        *_holder(plan, options, prefix, facts),
        *_place(options, prefix, facts),
        *(_service(options, port, facts) if options.service else ()),
        *(_keys(facts) if options.service else ()),
        *((Problem("tls-unfit", (("file", facts.tls[0]), ("detail", facts.tls[1]))),) if facts.tls else ()),
    )


def notices(plan: Plan, options: InstallOptions, facts: HostFacts) -> tuple[Problem, ...]:
    """What does not stop the installation, but should be known."""
    found = list(_surroundings(plan, options, facts))
    if facts.memory_available is not None and facts.memory_available < plan.memory_total_bytes:
        found.append(_memory("memory-now", plan, facts.memory_available))
    if options.service and facts.systemd is not None:
        missing = sorted({"memory", "pids"} - facts.controllers)
        if missing:
            found.append(Problem("no-limits", (("missing", ", ".join(missing)),)))
    return tuple(found)


def _surroundings(plan: Plan, options: InstallOptions, facts: HostFacts) -> Iterator[Problem]:
    if facts.clock < _EARLIEST:
        yield Problem("clock", (("now", time.strftime("%Y-%m-%d", time.gmtime(facts.clock))),))
    if facts.page_size > plan.page_size:
        yield Problem("page-size", (("found", str(facts.page_size)), ("planned", str(plan.page_size))))
    if options.guards:
        yield Problem("guards", (("guards", ", ".join(options.guards)),))
    if facts.copies:
        yield Problem("other-copy", (("places", ", ".join(facts.copies)),))


def _machine(plan: Plan, options: InstallOptions, facts: HostFacts) -> Iterator[Problem]:
    if facts.arch != plan.arch:
        yield Problem("arch", (("found", facts.arch), ("expected", plan.arch)))
    elif not any(set(variant.requires) <= options.features for variant in plan.variants):
        lacks = "; ".join(
            f"{variant.name}: {' '.join(sorted(set(variant.requires) - options.features))}"
            for variant in plan.variants
        )
        yield Problem("cpu", (("missing", lacks),))
    if facts.memory_total is not None and facts.memory_total < plan.memory_total_bytes:
        yield _memory("memory", plan, facts.memory_total)
    if facts.memory_limit is not None and facts.memory_limit < plan.memory_total_bytes:
        yield _memory("memory-limit", plan, facts.memory_limit)


def _memory(code: str, plan: Plan, found: int) -> Problem:
    return Problem(code, (("found", str(found // _MIB)), ("needed", str(-(-plan.memory_total_bytes // _MIB)))))


def _holder(plan: Plan, options: InstallOptions, prefix: Path, facts: HostFacts) -> Iterator[Problem]:
    """What is installed there already."""
    at = ("prefix", str(prefix))
    record = facts.record
    if str(prefix) in _TOO_WIDE or facts.prefix_state == "foreign":
        yield Problem("prefix-foreign", (at,))
    elif record is not None and record.name != plan.name:
        yield Problem("prefix-other", (at, ("other", record.name)))
    elif _is_older(plan, record) and not options.allow_downgrade:
        yield Problem(
            "downgrade", (("installed", str(record.release if record else "")), ("given", str(plan.release)))
        )
    if record is not None and record.service and not options.service:
        yield Problem("has-service", (at,))
    if record is not None and record.service and options.service and record.scope != options.scope:
        yield Problem("other-scope", (at, ("scope", record.scope)))
    if facts.release_state == "different":
        yield Problem("release-differs", (at, ("release", str(plan.release))))


def _is_older(plan: Plan, record: Installed | None) -> bool:
    return record is not None and record.state == "installed" and record.release > plan.release


def _place(options: InstallOptions, prefix: Path, facts: HostFacts) -> Iterator[Problem]:
    """The folder itself and its disk."""
    at = ("prefix", str(prefix))
    system = options.service and options.scope == SYSTEM
    real = prefix.resolve()
    if options.bundle.resolve() in (real, *real.parents):
        yield Problem("prefix-in-bundle", (at,))
    if options.service and _lies_in(prefix, _VOLATILE):
        yield Problem("prefix-volatile", (at,))
    if options.service and _UNFIT & set(str(prefix)):
        yield Problem("prefix-characters", (at,))
    if system and facts.closed is not None:
        yield Problem("prefix-closed", (at, ("folder", facts.closed)))
    if system and not facts.root_user:
        yield Problem("root")
    elif not facts.writable:
        yield Problem("not-writable", (("folder", facts.disk_folder),))
    yield from _disk(facts)


def _disk(facts: HostFacts) -> Iterator[Problem]:
    if facts.no_exec is not None:
        yield Problem("noexec", (("folder", facts.no_exec),))
    needed = facts.needed + facts.needed // 20
    if facts.disk_free < needed:
        values = (
            ("folder", facts.disk_folder),
            ("free", str(facts.disk_free // _MIB)),
            ("needed", str(needed // _MIB + 1)),
        )
        yield Problem("space", values)


def _service(options: InstallOptions, port: int, facts: HostFacts) -> Iterator[Problem]:
    if options.scope == SCRIPT:
        pass  # needs no systemd
    elif facts.systemd is None:
        yield Problem("no-systemd" if options.scope == SYSTEM else "no-user-systemd")
    elif facts.systemd < OLDEST_SYSTEMD:
        yield Problem("old-systemd", (("found", str(facts.systemd)), ("oldest", str(OLDEST_SYSTEMD))))
    if not facts.unit_ours:
        yield Problem("unit-other")
    if facts.port_owner == "other":
        yield Problem("port", (("port", str(port)),))
    elif facts.port_holder is not None:
        yield Problem("port-promised", (("port", str(port)), ("unit", facts.port_holder)))
    if not 0 < port < 65536:
        yield Problem("port-number", (("port", str(port)),))
    elif port < 1024:
        yield Problem("port-low", (("port", str(port)),))


def _keys(facts: HostFacts) -> Iterator[Problem]:
    """What the gateway would refuse to start with (gateway/assembly.py)."""
    if facts.keys == "unfit":
        yield Problem("keys-unfit", (("file", facts.key_file),))
    elif facts.keys != "set" and not is_loopback(facts.host):
        yield Problem("no-keys", (("host", facts.host), ("file", facts.key_file)))


def _lies_in(path: Path, tops: tuple[str, ...]) -> bool:
    return any(Path(top) in (path, *path.parents) for top in tops)
