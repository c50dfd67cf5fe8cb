"""What build, runtime, wheelhouse, bundle, audit, rehearse and pack give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sampan import i18n
from sampan.spec.plan import Reason


@dataclass(frozen=True)
class EngineVariant:
    """One built executable; ``path`` is absolute, in the store."""

    name: str
    path: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True)
class EngineBuild:
    """The engine's executables for one plan, and where they came from."""

    SCHEMA: ClassVar[str] = "sampan/engine-build/1"

    engine: str
    version: str
    source_sha256: str
    compiler: str
    arch: str
    variants: tuple[EngineVariant, ...]
    licences: tuple[str, ...] = ()  # absolute paths of licence texts that must travel


@dataclass(frozen=True)
class RuntimePackage:
    """One Debian package that the private runtime was taken from."""

    name: str
    version: str
    arch: str
    sha256: str


@dataclass(frozen=True)
class RuntimeTree:
    """The private Python for one architecture: ``path`` is a folder laid out as ``runtime/`` of the bundle."""

    SCHEMA: ClassVar[str] = "sampan/runtime/1"

    arch: str
    path: str
    python: str  # 3.11.2
    glibc: str  # 2.36
    glibcxx: str  # 3.4.30: highest exported by the runtime's own libstdc++
    packages: tuple[RuntimePackage, ...]


@dataclass(frozen=True)
class Wheel:
    """One wheel taken into the bundle."""

    name: str
    version: str
    file_name: str
    sha256: str
    licence: str | None = None


@dataclass(frozen=True)
class Wheelhouse:
    """``path`` is a folder laid out as ``app/`` of the bundle: sampan and its wheels, unpacked and compiled."""

    SCHEMA: ClassVar[str] = "sampan/wheelhouse/1"

    arch: str
    python: str
    path: str
    wheels: tuple[Wheel, ...]


@dataclass(frozen=True)
class BundleFolder:
    """The assembled, not yet packed bundle: ``path`` is the folder ``<name>-<release>``."""

    SCHEMA: ClassVar[str] = "sampan/bundle/1"

    name: str
    release: int
    arch: str
    path: str
    files: int
    size_bytes: int
    weights_bytes: int


@dataclass(frozen=True)
class Finding:
    """One thing that the audit has to say of one file.

    ``code`` is stable and documented; ``severity`` is error, warning or info; ``key`` and ``values`` name the
    catalogue message (``finding.<code>``).
    """

    code: str
    severity: str
    path: str
    values: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class AuditReport:
    """All findings of one audit, worst first, and how many files were read.

    ``bundle_digest`` names a bundle's contents that were audited, empty for anything else.
    """

    SCHEMA: ClassVar[str] = "sampan/audit/1"

    subject: str
    target: str
    files: int
    elf_files: int
    findings: tuple[Finding, ...]
    bundle_digest: str = ""

    @property
    def errors(self) -> int:
        """The number of findings that mean: it will not run there."""
        return sum(finding.severity == "error" for finding in self.findings)


@dataclass(frozen=True)
class Check:
    """One thing that the rehearsal tried. ``detail`` has no times in it: it travels in a reproducible bundle."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True)
class Timing:
    """Seconds of one step of the rehearsal; kept beside the bundle, not in it."""

    name: str
    seconds: float


@dataclass(frozen=True)
class Rehearsal:
    """Whether the bundle proved itself. ``status``: passed, failed or skipped (``why`` says why).

    ``bundle_digest`` names the contents that were rehearsed (see ``bundle.sums.content_digest``).
    """

    SCHEMA: ClassVar[str] = "sampan/rehearsal/1"

    status: str
    why: Reason | None
    cpu_model: str
    page_size: int
    emulated: bool
    checks: tuple[Check, ...] = ()
    timings: tuple[Timing, ...] = ()
    transcript: str = ""
    bundle_digest: str = ""

    @property
    def reason(self) -> str:
        """``why`` as a sentence in the language in force; empty where there is nothing to say."""
        return i18n.text(self.why.key, **dict(self.why.values)) if self.why else ""


@dataclass(frozen=True)
class Package:
    """The file to carry across."""

    SCHEMA: ClassVar[str] = "sampan/package/1"

    path: str
    sha256: str
    size_bytes: int
    name: str
    release: int
    rehearsed: bool
