"""Join the parts into ``<name>-<release>/``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from sampan import i18n
from sampan.bundle import copying, layout, leaks, manifest, portable, statement
from sampan.bundle.copying import Copy
from sampan.bundle.parts import BundleParts, check
from sampan.bundle.streams import Quiet
from sampan.disk import filesystem_errors, new_folder
from sampan.errors import BadInputError, FilesystemError
from sampan.spec import codec
from sampan.spec.artefacts import BundleFolder
from sampan.spec.ports import Progress


def assemble(
    parts: BundleParts,
    out: Path,
    *,
    papers: Mapping[str, bytes] | None = None,
    private: Sequence[str] = (),
    progress: Progress | None = None,
) -> BundleFolder:
    """Build the folder under ``out``; it appears whole or not at all.

    A folder of that name is replaced only if it is a bundle of ours. ``papers``: texts by place, such as the bill of
    materials. ``private``: words that no file but the weights may hold, such as the cache's folder. Raises
    IncompatibleError and BadInputError where the parts do not fit together or are not whole,
    VerificationError (a private word), FilesystemError.
    """
    check(parts)
    final = out / layout.folder_name(parts.plan.name, parts.plan.release)
    copies = _copies(parts)
    texts = {**_texts(parts), **(papers or {})}
    places = [item.place for item in copies]
    total = sum(item.size for item in copies)
    with filesystem_errors(final), ExitStack() as stack:
        _refuse_foreign(final)
        out.mkdir(parents=True, exist_ok=True)
        fresh = stack.enter_context(new_folder(final))
        task = stack.enter_context(progress.task(i18n.text("bundle.assembling"), total)) if progress else Quiet()
        for item in copies:
            copying.copy(item, fresh, task)
        for place, data in texts.items():
            (fresh / place).parent.mkdir(parents=True, exist_ok=True)
            (fresh / place).write_bytes(data)
            (fresh / place).chmod(layout.FILE_MODE)
        weights = f"{layout.WEIGHTS}/{parts.weights.file_name}"
        leaks.refuse(fresh, [path for path in (*places, *texts) if path != weights], private)
        _open_folders(fresh)
        _replace(fresh, final)
    return describe(final, parts.plan.name, parts.plan.release, parts.plan.arch, parts.weights.file_name)


def describe(folder: Path, name: str, release: int, arch: str, weights_file: str) -> BundleFolder:
    """What the folder holds now."""
    files = [entry for entry in layout.entries(folder) if entry.kind == "file" and entry.path != layout.WORK]
    weights = [entry.size for entry in files if entry.path == f"{layout.WEIGHTS}/{weights_file}"]
    return BundleFolder(
        name=name,
        release=release,
        arch=arch,
        path=str(folder),
        files=len(files),
        size_bytes=sum(entry.size for entry in files),
        weights_bytes=sum(weights),
    )


def _texts(parts: BundleParts) -> dict[str, bytes]:
    plan = codec.to_json(parts.plan).encode()
    return {
        layout.PLAN: plan,
        layout.PROFILE: codec.to_json(parts.profile).encode(),
        layout.WEIGHTS_INFO: codec.to_json(portable.weights(parts.weights)).encode(),
        layout.WORK: json.dumps(statement.facts(parts, plan), ensure_ascii=False).encode(),
    }


def _copies(parts: BundleParts) -> tuple[Copy, ...]:
    """Every file to take, each place once. Raises BadInputError."""
    found: dict[str, Copy] = {}
    for item in _wanted(parts):
        if item.place in found:
            raise BadInputError("bundle.twice", path=item.place)
        found[item.place] = item
    return tuple(found.values())


def _wanted(parts: BundleParts) -> Iterator[Copy]:
    for script in layout.SCRIPTS:
        mode = layout.PROGRAM_MODE if script.endswith(".sh") else layout.FILE_MODE
        yield copying.one(parts.scripts / script, script, mode)
    yield copying.one(parts.launcher, layout.LAUNCHER, layout.PROGRAM_MODE)
    yield from copying.tree(Path(parts.runtime.path), layout.RUNTIME)
    yield from copying.tree(Path(parts.wheelhouse.path), layout.APP)
    yield from _engine(parts)
    yield copying.one(Path(parts.weights.path), f"{layout.WEIGHTS}/{parts.weights.file_name}", layout.FILE_MODE)
    if parts.weights.golden_path is not None:
        yield copying.one(Path(parts.weights.golden_path), layout.GOLDEN, layout.FILE_MODE)


def _engine(parts: BundleParts) -> Iterator[Copy]:
    folder = f"{layout.ENGINE}/{parts.engine.engine}"
    wanted = {variant.name for variant in parts.plan.variants}
    for built in parts.engine.variants:
        if built.name in wanted:
            path = Path(built.path)
            yield copying.one(path, f"{folder}/{built.name}/{path.name}", layout.PROGRAM_MODE)
    for licence in parts.engine.licences:
        yield copying.one(Path(licence), f"{folder}/{Path(licence).name}", layout.FILE_MODE)


def _open_folders(folder: Path) -> None:
    """Folders get their mode last and outright: the umask has no say in a reproducible bundle."""
    folder.chmod(layout.FOLDER_MODE)
    for entry in layout.entries(folder):
        if entry.kind == "folder":
            (folder / entry.path).chmod(layout.FOLDER_MODE)


def _refuse_foreign(final: Path) -> None:
    if not final.exists() and not final.is_symlink():
        return
    if final.is_symlink() or not final.is_dir() or not is_ours(final):
        raise FilesystemError("bundle.foreign", path=str(final))


def is_ours(folder: Path) -> bool:
    """Whether sampan made this folder: its work mark or its manifest is there."""
    if (folder / layout.WORK).is_file():
        return True
    try:
        manifest.read(folder)
    except BadInputError:
        return False
    return True


def _replace(fresh: Path, final: Path) -> None:
    """Two renames; an old bundle stands aside, under a name that the next run sweeps, until the new one is there."""
    if not final.exists():
        fresh.rename(final)
        return
    with new_folder(final) as aside:
        final.rename(aside / "old")
        try:
            fresh.rename(final)
        except BaseException:
            (aside / "old").rename(final)
            raise
