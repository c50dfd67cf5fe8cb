"""Seal an assembled folder: rehearsal.txt, manifest.json, SHA256SUMS, modes and times."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from sampan import disk, i18n
from sampan.bundle import approval, layout, manifest, rehearsed, sums
from sampan.bundle import statement as summaries
from sampan.bundle.assemble import describe
from sampan.errors import BadInputError, VerificationError
from sampan.spec.artefacts import AuditReport, BundleFolder, Rehearsal
from sampan.spec.ports import Progress


def seal(
    folder: Path,
    rehearsal: Rehearsal | None,
    *,
    audit: AuditReport | None = None,
    signer: str | None = None,
    epoch: int | None = None,
    progress: Progress | None = None,
) -> BundleFolder:
    """Account for every file. May be called again, after the rehearsal for instance, with the same outcome.

    ``epoch``: seconds of every file's time; None means SOURCE_DATE_EPOCH, else 1980-01-01. An ``audit`` of None
    keeps the summary of an earlier sealing. APPROVAL.txt is written once there is a result to approve; ``signer``
    is the fingerprint of who will sign. Raises BadInputError (not a bundle of ours, a link or device in it, an
    unsafe name), VerificationError (weights or engine are not the planned ones), FilesystemError.
    """
    with disk.filesystem_errors(folder):
        statement = _begin(folder)
        checked = _audited(statement, audit)
        rehearsed.write(folder, rehearsal, statement["predicate"]["name"], checked)
        files = _checked_files(folder)
        digests = _hash(folder, [path for path in files if path != layout.MANIFEST], progress)
        _compare(folder, statement["predicate"], digests)
        if rehearsal is not None or audit is not None:
            predicate = _predicate(statement, rehearsal, checked)
            digests[layout.APPROVAL] = approval.write(folder, predicate, digests, signer)
            files[layout.APPROVAL] = layout.FILE_MODE
        statement = _complete(statement, digests, files, rehearsal, checked)
        text = manifest.to_bytes(statement)
        disk.write(folder / layout.MANIFEST, text)
        (folder / layout.WORK).unlink(missing_ok=True)
        digests[layout.MANIFEST] = sums.hash_file(folder / layout.MANIFEST)
        disk.write(folder / layout.SUMS, sums.render(digests))
        _normalise(folder, files, _epoch() if epoch is None else epoch)
    facts = manifest.Manifest(statement)
    weights = Path(facts.predicate["weights"]["file"]).name
    return describe(folder, facts.name, facts.release, facts.predicate["arch"], weights)


def _begin(folder: Path) -> dict[str, Any]:
    """The statement as far as it is known. From here on the folder does not verify until it is sealed again."""
    work = folder / layout.WORK
    if work.is_file():
        try:
            predicate = json.loads(work.read_bytes())
        except ValueError as error:
            raise BadInputError("artefact.json", path=str(work), detail=str(error)) from error
        statement = {
            "_type": manifest.STATEMENT_TYPE,
            "predicateType": manifest.PREDICATE_TYPE,
            "predicate": predicate,
        }
    else:
        statement = dict(manifest.read(folder).statement)
    for name in (*layout.UNLISTED, layout.APPROVAL):  # signature and sheet are of what was sealed before
        (folder / name).unlink(missing_ok=True)
    for name in (layout.REHEARSAL, layout.MANIFEST, layout.SUMS):
        disk.sweep(folder / name)
    return statement


def _audited(statement: Mapping[str, Any], audit: AuditReport | None) -> Mapping[str, Any]:
    """The audit's summary: of this audit, else of an earlier sealing."""
    earlier = statement["predicate"].get("audit")
    return earlier if audit is None and earlier is not None else summaries.audit_summary(audit)


def _checked_files(folder: Path) -> dict[str, int]:
    """Mode by path of every file that will be listed, the manifest included. Raises BadInputError."""
    found = {layout.MANIFEST: layout.FILE_MODE}
    for entry in layout.entries(folder):
        fault = layout.fault_of_name(entry.path)
        if fault:
            raise BadInputError("bundle.file-name", path=repr(entry.path), fault=fault)
        if entry.kind not in ("file", "folder"):
            raise BadInputError("bundle.kind", path=str(folder / entry.path))
        if entry.kind == "file" and entry.path not in (layout.WORK, layout.MANIFEST, *layout.UNLISTED):
            found[entry.path] = layout.PROGRAM_MODE if entry.mode & 0o111 else layout.FILE_MODE
    return found


def _hash(folder: Path, paths: list[str], progress: Progress | None) -> dict[str, str]:
    with ExitStack() as stack:
        if progress is None:
            return sums.hash_files(folder, paths)
        task = stack.enter_context(progress.task(i18n.text("bundle.sealing"), len(paths)))
        return sums.hash_files(folder, paths, task.advance)


def _compare(folder: Path, predicate: Mapping[str, Any], digests: Mapping[str, str]) -> None:
    """The files must be those that the plan was made with; a variant taken out on purpose is no longer promised."""
    engine = predicate["engine"]
    promised = {
        predicate["weights"]["file"]: predicate["weights"]["sha256"],
        layout.PLAN: predicate["plan"]["sha256"],
    }
    for built in engine["variants"]:
        prefix = f"{layout.ENGINE}/{engine['name']}/{built['name']}/"
        promised.update({path: built["sha256"] for path in digests if path.startswith(prefix)})
    for path, expected in promised.items():
        if digests.get(path) != expected:
            raise VerificationError(
                "bundle.digest", path=str(folder / path), expected=expected, found=digests.get(path, "-")
            )


def _predicate(
    statement: Mapping[str, Any], rehearsal: Rehearsal | None, checked: Mapping[str, Any]
) -> dict[str, Any]:
    """The facts of the build with the outcomes of audit and rehearsal."""
    return {
        **statement["predicate"],
        "audit": checked,
        "rehearsal": summaries.rehearsal_summary(rehearsal),
    }


def _complete(
    statement: Mapping[str, Any],
    digests: Mapping[str, str],
    files: Mapping[str, int],
    rehearsal: Rehearsal | None,
    checked: Mapping[str, Any],
) -> dict[str, Any]:
    """The statement with subjects and outcomes; what it had besides is kept."""
    predicate = _predicate(statement, rehearsal, checked)
    order = sorted(digests, key=os.fsencode)
    predicate["programs"] = [path for path in order if files[path] == layout.PROGRAM_MODE]
    subject = [{"name": path, "digest": {"sha256": digests[path]}} for path in order]
    return {**statement, "predicate": predicate, "subject": subject}


def _epoch() -> int:
    value = os.environ.get("SOURCE_DATE_EPOCH", "")
    return int(value) if value.isdecimal() else layout.EPOCH


def _normalise(folder: Path, files: Mapping[str, int], epoch: int) -> None:
    """One time for all, modes without the umask's say; folders last, since their files touch them."""
    for path, mode in files.items():
        (folder / path).chmod(mode)
        os.utime(folder / path, (epoch, epoch))
    (folder / layout.SUMS).chmod(layout.FILE_MODE)
    os.utime(folder / layout.SUMS, (epoch, epoch))
    folders = [folder, *(folder / entry.path for entry in layout.entries(folder) if entry.kind == "folder")]
    for each in folders:
        each.chmod(layout.FOLDER_MODE)
        os.utime(each, (epoch, epoch))
