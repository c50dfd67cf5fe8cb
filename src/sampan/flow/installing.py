"""What changes an installation: upgrade from a tar or folder that this release has judged, roll back, tidy up."""

from __future__ import annotations

import os
import pwd
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sampan import disk, i18n
from sampan.bundle import delta
from sampan.bundle.archive import Archive
from sampan.errors import BadInputError, MissingToolError, UsageError, VerificationError
from sampan.flow import target, trusting
from sampan.install import change, gc, release, source, sums
from sampan.install import rollback as rolling
from sampan.install.model import DEFAULT_HOME, RELEASES, Installed, InstallOptions
from sampan.install.source import Source
from sampan.install.steps import put
from sampan.spec import codec
from sampan.spec.plan import Plan
from sampan.spec.ports import Progress
from sampan.survey import features
from sampan.survey import guards as security
from sampan.trust.keys import PublicKey

if TYPE_CHECKING:
    from sampan.install.service import Found
    from sampan.trust.policy import Verdict

Say = Callable[[str], None]
_OVERRULED = ("unsigned", "unknown-signer")  # what --unsigned overrules; forgery is never overlooked


@dataclass(frozen=True)
class Wish:
    """How an upgrade is to be done. ``keys``: those that count here."""

    keys: Sequence[PublicKey]
    unsigned: bool = False
    allow_downgrade: bool = False
    keep: int = 2


def who() -> str:
    """The person at the keyboard, as far as this machine knows: for the record of what was overridden."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = str(os.getuid())
    by = os.environ.get("SUDO_USER", "")
    return f"{by} ({name})" if by and by.isprintable() and len(by) < 64 else name


def guards() -> tuple[str, ...]:
    """Security modules that may refuse a program, by name and state."""
    found = security.facts(Path("/"))
    states = (("SELinux", found.selinux), ("KYSEC", found.kysec), ("fapolicyd", found.fapolicyd))
    return tuple(f"{name} ({state})" for name, state in states if state in ("enforcing", "present", "running"))


def upgrade(path: Path, found: Found, wish: Wish, say: Say, progress: Progress) -> Installed:
    """Put the bundle at ``path`` in force in the place of what is installed. Nothing of it runs before it is proved.

    Raises VerificationError, BadInputError, and as ``install`` does.
    """
    record = _need(found)
    with _opened(path, record, wish, say, progress) as given:
        if given.plan.name != record.name:
            raise BadInputError("install.other-service", path=str(path), found=given.plan.name, wanted=record.name)
        options = InstallOptions(
            bundle=path,
            features=features.current(),
            prefix=Path(record.prefix),
            service=record.service,
            scope=record.scope,
            allow_downgrade=wish.allow_downgrade,
            unsigned=wish.unsigned,
            who=who(),
            guards=guards(),
            keep=wish.keep,
        )
        return put("upgrade", given, options, target.hands(say, progress))


def _need(found: Found) -> Installed:
    if found.record is None:
        raise UsageError("install.not-installed", prefix=str(DEFAULT_HOME / found.name))
    return found.record


@contextmanager
def _opened(path: Path, record: Installed, wish: Wish, say: Say, progress: Progress) -> Iterator[Source]:
    """The bundle as a source; who vouches for its list of files is judged before a byte is copied."""

    def prove(copy: Path) -> None:
        checked = trusting.check(copy, wish.keys, progress)
        if checked.problems:
            why = i18n.text("install.untrusted.damaged", first=checked.problems[0].message)
            raise VerificationError("install.untrusted", path=str(path), why=why)
        _accept(path, checked.verdict, wish)

    verdict = trusting.judge(path, wish.keys, progress)
    _accept(path, verdict, wish)
    signers = ", ".join(f"SHA256:{one}" for one in verdict.signers)
    say(i18n.text("install.signed-by", signers=signers) if signers else i18n.text("install.unsigned-first"))
    if path.is_dir():
        yield source.from_folder(path, prove)
        return
    if delta.is_delta(path):
        with _rebuilt(path, record, progress) as folder:
            whole = source.from_folder(folder, prove)
            yield replace(whole, lay=lambda partial, _progress: _move(folder, partial))
        return
    with path.open("rb") as stream:
        yield _of_tar(Archive(stream, path), prove)


@contextmanager
def _rebuilt(path: Path, record: Installed, progress: Progress) -> Iterator[Path]:
    """The whole bundle that a delta stands for, made beside the releases from the one in force; gone at the end."""
    prefix = Path(record.prefix)
    with disk.filesystem_errors(prefix):
        release.sweep_rebuilt(prefix)
        place = prefix / f"{release.REBUILT}{os.getpid()}"
        place.mkdir(0o700)
    try:
        yield delta.rebuild(path, prefix / RELEASES / str(record.release), place, progress=progress)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _move(folder: Path, partial: Path) -> None:
    """It lies on the same disk, and is nobody's but ours."""
    folder.rename(partial)


def _accept(path: Path, verdict: Verdict, wish: Wish) -> None:
    """As install.sh does: without any trusted key nobody can be asked. Raises VerificationError."""
    status = verdict.status
    fine = status == "trusted" or (status in _OVERRULED and (wish.unsigned or not wish.keys))
    if not fine:
        raise VerificationError("install.untrusted", path=str(path), why=i18n.text(f"install.untrusted.{status}"))


def _of_tar(tar: Archive, prove: Callable[[Path], None]) -> Source:
    text, listed = tar.read("plan.json"), tar.read(sums.NAME)
    if text is None or listed is None:
        raise BadInputError("bundle.unsealed", path=str(tar.path))
    digests = sums.parse(listed.decode("utf-8", "replace"), where=f"{tar.path}: {sums.NAME}")
    members = sorted(tar.files.items(), key=lambda pair: pair[1].offset)
    total = sum(member.size for _, member in members)

    def lay(folder: Path, progress: Progress) -> None:
        pieces = (release.Piece(name, bool(one.mode & 0o100), tar.pieces(one)) for name, one in members)
        release.lay(pieces, digests, folder, progress, total)

    plan = codec.from_json(Plan, text.decode("utf-8", "replace"), where=f"{tar.path}: plan.json")
    return Source(tar.path, plan, listed, total, lay, prove)


def rollback(found: Found, wanted: int | None, say: Say, progress: Progress) -> Installed:
    """An earlier release in force again. Raises as ``install.rollback`` does."""
    hands = target.hands(say, progress)
    return rolling.rollback(Path(_need(found).prefix), wanted, found.machine(hands.runner), hands)


def releases(found: Found) -> gc.Releases:
    """What is there."""
    return gc.releases(_need(found))


def collect(found: Found, keep: int, say: Say, progress: Progress) -> gc.Collected:
    """Remove old releases."""
    hands = target.hands(say, progress)
    return gc.gc(Path(_need(found).prefix), keep, found.machine(hands.runner), hands)


def settle(found: Found, say: Say) -> None:
    """Bring what a killed change left to an end."""
    from sampan.edge.progress import SilentProgress

    hands = target.hands(say, SilentProgress())
    change.settle(Path(_need(found).prefix), found.machine(hands.runner), hands)


def logs(found: Found, *, follow: bool, lines: int) -> None:
    """Become the program that shows what the service printed. Raises UsageError without a unit, MissingToolError."""
    from sampan.edge.process import ProcessRunner

    if not found.has_unit:
        raise UsageError("install.no-unit", name=found.name, command="./start.sh")
    command = found.machine(ProcessRunner()).log_command(
        found.name, f"--lines={lines}", "--no-pager", "--output=short", *(["--follow"] if follow else [])
    )
    sys.stdout.flush()
    try:
        os.execvp(command[0], command)  # noqa: S606
    except OSError as error:
        raise MissingToolError("tool.missing", tool=command[0]) from error
