"""The systemd unit, for the systemd that is there: a pure function, its output compared with golden files.

Versions are those in which systemd's NEWS introduces a directive; an older systemd would only warn, but a directive
under a new name would silently not hold there. Directives that need seccomp are left to systemd >= 243: older ones
refuse to start a service where the kernel has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sampan.install.model import SYSTEM, OwnLimits
from sampan.spec.plan import Plan

OLDEST_SYSTEMD = 219  # EL 7; what sampan knows and tests
_MIB = 1 << 20
_HOMES = ("/home", "/root", "/run/user")

#: keeps libraries from looking for a network or a proxy, and from writing beside the code
ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "NO_PROXY": "*",
    "no_proxy": "*",
}


@dataclass(frozen=True)
class Limits:
    """What the service may take. ``cpu_percent`` 100 is one CPU, ``cpus`` a list such as ``0-3,8``; None: all."""

    memory_bytes: int
    tasks: int
    files: int = 65536
    lock_memory: bool = False
    cpu_percent: int | None = None
    cpus: str | None = None


@dataclass(frozen=True)
class UnitFacts:
    """All that the unit says. ``language`` is that of the service's own messages, ``keys`` the file of API keys."""

    name: str
    description: str
    prefix: Path
    user: str
    host: str
    port: int
    limits: Limits
    systemd: int
    language: str = "en"
    scope: str = SYSTEM
    keys: str | None = None
    tls: tuple[str, str] | None = None  # certificate and its key

    @property
    def words(self) -> tuple[str, ...]:
        """What ``sampan`` is told."""
        keys = ("--keys", self.keys) if self.keys else ()
        tls = ("--tls-cert", self.tls[0], "--tls-key", self.tls[1]) if self.tls else ()
        return ("serve", "--host", self.host, "--port", str(self.port), *keys, *tls)


_NO_WISHES = OwnLimits()


def limits(plan: Plan, own: OwnLimits = _NO_WISHES) -> Limits:
    """The administrator's limits, else the plan's; an older plan's memory with a quarter (at least 256 MiB) in
    reserve, so that only a leak meets the limit. Threads of engine and gateway with room for llama-server's one HTTP
    thread a CPU on large machines.
    """
    reserved = plan.memory_total_bytes + max(plan.memory_total_bytes // 4, 256 * _MIB)
    memory = own.memory_bytes or plan.memory_limit_bytes or reserved
    return Limits(
        memory_bytes=-(-memory // _MIB) * _MIB,
        tasks=1024 + 4 * plan.settings.threads,
        lock_memory="mlock" in plan.settings.load_mode,
        cpu_percent=own.cpu_percent or plan.cpu_quota_percent,
        cpus=own.cpus,
    )


def render(facts: UnitFacts) -> str:
    """The unit file's text. It names ``current``, so an upgrade need not rewrite it."""
    hardening = _hardening if facts.scope == SYSTEM else _user_hardening
    sections = (
        ("# Written by `sampan install`. For changes of your own: systemctl edit sampan-" + facts.name,),
        ("[Unit]", *_unit(facts)),
        ("[Service]", *_service(facts), *_limits(facts), *hardening(facts)),
        ("[Install]", f"WantedBy={'multi-user' if facts.scope == SYSTEM else 'default'}.target"),
    )
    return "\n\n".join("\n".join(lines) for lines in sections) + "\n"


def _unit(facts: UnitFacts) -> Iterator[str]:
    yield f"Description={facts.description.replace('%', '%%')}"
    yield f"Documentation=file:{_path(facts.prefix)}/current/README.txt"
    yield "After=network.target"
    if facts.systemd >= 230:
        yield "# Nobody is near: go on trying, whatever happens."
        yield "StartLimitIntervalSec=0"


def _service(facts: UnitFacts) -> Iterator[str]:
    current = f"{_path(facts.prefix)}/current"
    top = "/run" if facts.scope == SYSTEM else "%t"
    folder = f"{top}/{facts.user}"  # short: the path of the engine's socket in it may have 107 bytes
    yield "Type=notify"
    yield "NotifyAccess=main"
    if facts.scope == SYSTEM:
        yield f"User={facts.user}"
        yield f"Group={facts.user}"
    yield f"WorkingDirectory={current}"
    words = " ".join(facts.words).replace("%", "%%")
    yield f"ExecStart={current}/sampan {words}"
    yield "ExecReload=/bin/sh -c 'kill -HUP ${MAINPID}'"  # not every target has /bin/kill
    yield f"RuntimeDirectory={facts.user}"
    yield "RuntimeDirectoryMode=0700"
    yield "UMask=0077"
    yield "Restart=always"
    yield "RestartSec=5"
    if facts.systemd < 230:
        yield "# Nobody is near: go on trying, whatever happens."
        yield "StartLimitInterval=0"
    yield "TimeoutStartSec=900"
    yield "TimeoutStopSec=60"
    yield "KillMode=mixed"
    own = {"RUNTIME_DIRECTORY": folder, "SAMPAN_LANG": facts.language}  # systemd < 240 does not set the first
    for key, value in (ENVIRONMENT | own).items():
        yield f"Environment={key}={value}"


def _limits(facts: UnitFacts) -> Iterator[str]:
    wanted = facts.limits
    yield "# limits, from the plan"
    yield f"{'MemoryMax' if facts.systemd >= 231 else 'MemoryLimit'}={wanted.memory_bytes // _MIB}M"
    if facts.systemd >= 227:
        yield f"TasksMax={wanted.tasks}"
    if wanted.cpu_percent is not None:
        yield f"CPUQuota={wanted.cpu_percent}%"
    if wanted.cpus is not None:
        yield f"CPUAffinity={wanted.cpus.replace(',', ' ')}"
        if facts.systemd >= 244:
            yield f"AllowedCPUs={wanted.cpus}"
    yield f"LimitNOFILE={wanted.files}"
    if wanted.lock_memory:
        yield "LimitMEMLOCK=infinity"


def _hardening(facts: UnitFacts) -> Iterator[str]:
    """Nothing here may hide or close /sys/devices/system/cpu: the engine counts its CPUs there."""
    yield "# what the service may not do"
    yield "NoNewPrivileges=yes"
    yield "CapabilityBoundingSet="
    yield "PrivateTmp=yes"
    yield "PrivateDevices=yes"
    yield f"ProtectSystem={'strict' if facts.systemd >= 232 else 'full'}"
    yield f"ProtectHome={'read-only' if _below(facts.prefix, _HOMES) else 'yes'}"
    if facts.systemd >= 243:
        yield "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK"
        yield "RestrictSUIDSGID=yes"
        yield "LockPersonality=yes"
        yield "ProtectHostname=yes"


def _user_hardening(facts: UnitFacts) -> Iterator[str]:
    """What a user's own systemd can do without rights of root."""
    yield "# what the service may not do"
    yield "NoNewPrivileges=yes"
    if facts.systemd >= 243:
        yield "RestrictSUIDSGID=yes"
        yield "LockPersonality=yes"


def _below(path: Path, tops: tuple[str, ...]) -> bool:
    return any(Path(top) in (path, *path.parents) for top in tops)


def _path(path: Path) -> str:
    """``path`` with systemd's specifiers escaped. Preflight has refused white space and quotes."""
    return str(path).replace("%", "%%")
