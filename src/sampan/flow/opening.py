"""A bundle that this release is to be replaced by, opened as a source: a folder, a tar, a delta, or the rest of a tar
that is being consumed. Who vouches for its list of files is judged before a byte is copied; nothing of it runs.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from sampan import disk, i18n
from sampan.bundle import delta
from sampan.bundle.archive import Archive
from sampan.errors import BadInputError, VerificationError
from sampan.flow import consuming, trusting
from sampan.install import release, source, sums
from sampan.install.model import RELEASES, Installed
from sampan.install.source import Source
from sampan.spec import codec
from sampan.spec.plan import Plan
from sampan.spec.ports import Progress
from sampan.trust.keys import PublicKey
from sampan.trust.policy import Verdict

Say = Callable[[str], None]
_OVERRULED = ("unsigned", "unknown-signer")  # what --unsigned overrules; forgery is never overlooked


@dataclass(frozen=True)
class Wish:
    """How an upgrade is to be done. ``keys``: those that count here. ``consume``: the bundle goes as the release
    comes.
    """

    keys: Sequence[PublicKey]
    unsigned: bool = False
    allow_downgrade: bool = False
    keep: int = 2
    consume: bool = False
    restart: bool = False


@contextmanager
def opened(path: Path, record: Installed, wish: Wish, say: Say, progress: Progress) -> Iterator[Source]:
    """The bundle at ``path`` as a source for ``record``'s prefix.

    Raises VerificationError, BadInputError, FilesystemError, UsageError.
    """

    def prove(copy: Path) -> None:
        checked = trusting.check(copy, wish.keys, progress)
        if checked.problems:
            why = i18n.text("install.untrusted.damaged", first=checked.problems[0].message)
            raise VerificationError("install.untrusted", path=str(path), why=why)
        _accept(path, checked.verdict, wish)

    rest = consuming.rest_of(path, record)
    verdict = trusting.judge(rest or path, wish.keys, progress)
    _accept(path, verdict, wish)
    signers = ", ".join(f"SHA256:{one}" for one in verdict.signers)
    say(i18n.text("install.signed-by", signers=signers) if signers else i18n.text("install.unsigned-first"))
    if rest is not None:
        say(i18n.text("install.taking-goes-on", path=path))
        with _kept(path, consuming.of_rest(path, rest, prove), record, say) as given:
            yield given
    elif path.is_dir():
        yield source.from_folder(path, prove, consume=wish.consume)
    elif delta.is_delta(path):
        with _rebuilt(path, record, progress) as folder:
            yield _of_rebuilt(path, folder, prove, consume=wish.consume)
    elif wish.consume:
        with path.open("rb") as stream:
            whole = consuming.of_tar(Archive(stream, path), prove)
            with _kept(path, whole, record, say) as given:
                yield given
    else:
        with path.open("rb") as stream:
            yield _of_tar(Archive(stream, path), prove)


@contextmanager
def _kept(path: Path, given: Source, record: Installed, say: Say) -> Iterator[Source]:
    """Where it comes to nothing, say how to go on: the tar is not whole any longer."""
    try:
        yield given
    except BaseException:
        if release.aside(Path(record.prefix) / RELEASES / str(given.plan.release), release.TAKING).exists():
            say(i18n.text("install.taking-kept", path=path))
        raise


def _accept(path: Path, verdict: Verdict, wish: Wish) -> None:
    """As install.sh does: without any trusted key nobody can be asked. Raises VerificationError."""
    status = verdict.status
    fine = status == "trusted" or (status in _OVERRULED and (wish.unsigned or not wish.keys))
    if not fine:
        raise VerificationError("install.untrusted", path=str(path), why=i18n.text(f"install.untrusted.{status}"))


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


def _of_rebuilt(path: Path, folder: Path, prove: Callable[[Path], None], *, consume: bool) -> Source:
    """It lies on the same disk, and is nobody's but ours: it only changes its name."""
    whole = source.from_folder(folder, prove)
    moved = replace(whole, lay=lambda partial, _progress: _move(folder, partial))
    return replace(moved, used=lambda: path.unlink(missing_ok=True)) if consume else moved


def _move(folder: Path, partial: Path) -> None:
    folder.rename(partial)


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
    return Source(tar.path, plan, listed, lambda _disk: total, lay, prove)
