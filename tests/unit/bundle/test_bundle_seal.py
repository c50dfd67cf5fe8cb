"""Sealing and verifying: every file accounted for, every change found."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sampan import i18n
from sampan.bundle import layout, manifest, sums
from sampan.bundle.assemble import assemble
from sampan.bundle.parts import BundleParts
from sampan.bundle.seal import seal
from sampan.bundle.verify import verify
from sampan.errors import BadInputError, ExitCode, VerificationError
from sampan.spec.artefacts import AuditReport, Check, Finding, Rehearsal, Timing
from sampan.spec.plan import Reason


def _bytes(folder: Path) -> dict[str, bytes]:
    return {e.path: (folder / e.path).read_bytes() for e in layout.entries(folder) if e.kind == "file"}


def test_a_sealed_folder_verifies(sealed: Path) -> None:
    assert verify(sealed) == ()
    assert not (sealed / layout.WORK).exists()


def test_coreutils_alone_can_check_it(sealed: Path) -> None:
    done = subprocess.run(["sha256sum", "-c", "--strict", "--quiet", "SHA256SUMS"], cwd=sealed, check=False)
    assert done.returncode == 0


def test_sums_list_every_file_but_themselves_sorted_by_bytes(sealed: Path) -> None:
    lines = (sealed / layout.SUMS).read_text().splitlines()
    paths = [line.split("  ", 1)[1] for line in lines]
    assert paths == sorted(paths, key=str.encode)
    assert set(paths) == set(_bytes(sealed)) - {layout.SUMS}
    assert lines[0].split("  ")[0] == hashlib.sha256((sealed / paths[0]).read_bytes()).hexdigest()


def test_the_manifest_is_a_statement_over_every_file(sealed: Path) -> None:
    statement = json.loads((sealed / layout.MANIFEST).read_bytes())
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert {subject["name"] for subject in statement["subject"]} == set(_bytes(sealed)) - {
        layout.SUMS,
        layout.MANIFEST,
    }
    predicate = statement["predicate"]
    assert (predicate["name"], predicate["release"], predicate["arch"]) == ("mini", 3, "aarch64")
    assert predicate["engine"]["variants"][0]["name"] == "armv8.0"
    assert len(predicate["engine"]["variants"]) == 1
    assert predicate["runtime"]["packages"][0] == {
        "name": "libc6",
        "version": "2.36-9",
        "arch": "arm64",
        "sha256": "2" * 64,
    }
    assert predicate["wheels"][0]["sha256"] == "3" * 64
    assert predicate["plan"]["sha256"] == hashlib.sha256((sealed / layout.PLAN).read_bytes()).hexdigest()
    assert predicate["rehearsal"]["status"] == "passed"
    assert "sampan" in predicate["programs"]
    assert "weights/mini.gguf" not in predicate["programs"]


def test_the_same_parts_elsewhere_give_the_same_bytes(
    parts_in: Callable[[Path], BundleParts], passed: Rehearsal, tmp_path: Path
) -> None:
    folders = []
    for where, umask, language in (("one", 0o022, "en"), ("another/place", 0o077, "zh")):
        old = os.umask(umask)
        i18n.use(language)
        try:
            parts = parts_in(tmp_path / where)
            source = f"/somewhere/{where.replace('/', '-')}/mini-folder"
            parts = replace(parts, weights=replace(parts.weights, source=source))
            folder = Path(assemble(parts, tmp_path / where / "out").path)
            seal(folder, replace(passed, timings=(Timing("start", float(len(where))),)))
        finally:
            os.umask(old)
            i18n.use("en")
        folders.append(folder)
    first, second = folders
    assert _bytes(first) == _bytes(second)
    assert layout.entries(first) == layout.entries(second)


def test_every_time_is_the_fixed_one(sealed: Path, passed: Rehearsal, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [sealed, *(sealed / entry.path for entry in layout.entries(sealed))]
    assert {path.stat().st_mtime for path in paths} == {layout.EPOCH}
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    seal(sealed, passed)
    assert {path.stat().st_mtime for path in paths} == {1700000000}


def test_sealing_again_gives_the_same_bytes(sealed: Path, passed: Rehearsal) -> None:
    before = _bytes(sealed)
    seal(sealed, passed)
    assert _bytes(sealed) == before


def test_sealing_first_without_and_then_with_a_rehearsal(sealed: Path, passed: Rehearsal) -> None:
    before = _bytes(sealed)
    seal(sealed, None)
    assert not manifest.read(sealed).rehearsed
    assert verify(sealed) == ()
    seal(sealed, passed)
    assert _bytes(sealed) == before


def test_sealing_again_keeps_unknown_fields_and_the_audit(sealed: Path) -> None:
    report = AuditReport("mini-3", "kylin", 9, 4, (Finding("page.alignment", "error", "x"),))
    seal(sealed, None, audit=report)
    statement = json.loads((sealed / layout.MANIFEST).read_bytes())
    statement["fromTheFuture"] = 1
    statement["predicate"]["engine"]["alsoNew"] = 2
    (sealed / layout.MANIFEST).write_text(json.dumps(statement))
    seal(sealed, None)
    after = json.loads((sealed / layout.MANIFEST).read_bytes())
    assert after["fromTheFuture"] == 1
    assert after["predicate"]["engine"]["alsoNew"] == 2
    assert after["predicate"]["audit"]["error_codes"] == ["page.alignment"]
    assert after["predicate"]["audit"]["status"] == "failed"


def test_an_override_of_the_audit_is_recorded_for_machines_and_people(sealed: Path, passed: Rehearsal) -> None:
    found = [
        Finding("page.alignment", "error", "engine/x"),
        Finding("glibc.ceiling", "error", "app/y.so"),
        Finding("closure.missing", "error", "app/y.so"),
        Finding("isa.unguarded", "warning", "app/z.so"),
    ]
    seal(sealed, passed, audit=AuditReport("mini", "kylin", 3, 2, tuple(found)))
    override = manifest.read(sealed).predicate["audit"]["override"]
    assert (override["by"], override["errors"]) == ("--allow-findings", 3)
    assert override["findings"] == [{"code": each.code, "path": each.path} for each in found[:3]]
    text = (sealed / layout.REHEARSAL).read_text(encoding="utf-8")
    assert "3" in text.splitlines()[0]
    assert "closure.missing, glibc.ceiling, page.alignment" in text.splitlines()[0]
    assert "警告" in text.splitlines()[1]
    assert verify(sealed) == ()
    before = _bytes(sealed)
    seal(sealed, passed)  # the audit of the earlier sealing counts
    assert _bytes(sealed) == before


def test_a_very_long_list_of_findings_is_cut(sealed: Path) -> None:
    found = tuple(Finding("page.alignment", "error", f"app/{index}.so") for index in range(500))
    seal(sealed, None, audit=AuditReport("mini", "kylin", 500, 500, found))
    override = manifest.read(sealed).predicate["audit"]["override"]
    assert (override["errors"], len(override["findings"])) == (500, 200)


def test_a_clean_audit_records_no_override(sealed: Path, passed: Rehearsal) -> None:
    seal(sealed, passed, audit=AuditReport("mini", "kylin", 3, 2, (Finding("isa.unguarded", "warning", "app/z"),)))
    assert "override" not in manifest.read(sealed).predicate["audit"]
    assert "manifest.json" not in (sealed / layout.REHEARSAL).read_text(encoding="utf-8")


def test_the_rehearsal_text_has_checks_and_transcript(sealed: Path, passed: Rehearsal) -> None:
    told = replace(passed, checks=(Check("start", True, "healthy"),), transcript="$ ./start.sh\nready\n")
    seal(sealed, told)
    text = (sealed / layout.REHEARSAL).read_text()
    assert "[ok] start: healthy" in text
    assert "$ ./start.sh" in text


@pytest.mark.parametrize("rehearsal", [None, Rehearsal("skipped", Reason("rehearse.not-wanted"), "", 4096, False)])
def test_a_missing_rehearsal_is_said_in_both_languages(sealed: Path, rehearsal: Rehearsal | None) -> None:
    seal(sealed, rehearsal)
    text = (sealed / layout.REHEARSAL).read_text()
    assert "was not rehearsed" in text
    assert "未经演练" in text
    assert ("--no-rehearse" in text) == (rehearsal is not None)


def test_the_rehearsal_text_does_not_depend_on_the_language_in_force(sealed: Path) -> None:
    texts = set()
    for language in i18n.LANGUAGES:
        i18n.use(language)
        try:
            seal(sealed, Rehearsal("skipped", Reason("rehearse.not-wanted"), "", 4096, False))
        finally:
            i18n.use("en")
        texts.add((sealed / layout.REHEARSAL).read_text())
    assert len(texts) == 1


def test_changed_weights_are_found_at_sealing(parts: BundleParts, tmp_path: Path) -> None:
    folder = Path(assemble(parts, tmp_path / "out").path)
    with (folder / "weights/mini.gguf").open("ab") as stream:
        stream.write(b"x")
    with pytest.raises(VerificationError) as caught:
        seal(folder, None)
    assert caught.value.key == "bundle.digest"
    assert caught.value.exit_code == ExitCode.VERIFICATION_FAILED


def test_a_variant_taken_out_on_purpose_can_be_sealed(sealed: Path) -> None:
    shutil.rmtree(sealed / "engine/llama.cpp/armv8.0")
    seal(sealed, None)
    assert verify(sealed) == ()


def test_a_folder_that_is_not_ours_is_not_sealed(tmp_path: Path) -> None:
    (tmp_path / "thing").write_text("x")
    with pytest.raises(BadInputError) as caught:
        seal(tmp_path, None)
    assert caught.value.key == "bundle.unsealed"
    assert [path.name for path in tmp_path.iterdir()] == ["thing"]


def test_a_link_that_crept_in_is_refused(sealed: Path) -> None:
    (sealed / "app/link").symlink_to("/etc/passwd")
    with pytest.raises(BadInputError) as caught:
        seal(sealed, None)
    assert caught.value.key == "bundle.kind"
    assert [problem.kind for problem in verify(sealed)] == ["sums"]  # half-sealed never verifies


def _append(folder: Path) -> None:
    with (folder / "weights/mini.gguf").open("r+b") as stream:
        stream.write(b"BUGG")


def _link(folder: Path) -> None:
    (folder / "install.sh").rename(folder.parent / "install.sh")
    (folder / "install.sh").symlink_to(folder.parent / "install.sh")


def _folder_link(folder: Path) -> None:
    (folder / "app").rename(folder.parent / "app")
    (folder / "app").symlink_to(folder.parent / "app")


CHANGES: dict[str, tuple[Callable[[Path], object], set[tuple[str, str]]]] = {
    "changed": (_append, {("changed", "weights/mini.gguf")}),
    "missing": (lambda f: (f / "start.sh").unlink(), {("missing", "start.sh")}),
    "extra": (lambda f: (f / "app/evil.pth").touch(), {("extra", "app/evil.pth")}),
    "extra hidden": (lambda f: (f / ".evil").touch(), {("extra", ".evil")}),
    "extra folder": (lambda f: (f / "app/new").mkdir(), {("extra", "app/new/")}),
    "link": (_link, {("kind", "install.sh")}),
    "folder link": (
        _folder_link,
        {("extra", "app"), ("kind", "app"), ("missing", "app/sampan/__init__.py"), ("missing", "app/中文.txt")},
    ),
    "fifo": (lambda f: os.mkfifo(f / "app/pipe"), {("extra", "app/pipe"), ("kind", "app/pipe")}),
    "set-id": (lambda f: (f / "sampan").chmod(0o4755), {("mode", "sampan")}),
    "writable": (lambda f: (f / "README.txt").chmod(0o666), {("mode", "README.txt")}),
    "not executable": (lambda f: (f / "install.sh").chmod(0o644), {("mode", "install.sh")}),
    "no sums": (lambda f: (f / "SHA256SUMS").unlink(), {("sums", "SHA256SUMS")}),
    "no manifest": (lambda f: (f / "manifest.json").unlink(), {("missing", "manifest.json")}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_found_and_named(sealed: Path, change: str) -> None:
    act, expected = CHANGES[change]
    act(sealed)
    problems = verify(sealed)
    assert {(problem.kind, problem.path) for problem in problems} == expected
    assert all(problem.path in problem.message for problem in problems)


def test_sums_recomputed_over_a_changed_file_do_not_agree_with_the_manifest(sealed: Path) -> None:
    _append(sealed)
    paths = [path for path in _bytes(sealed) if path != layout.SUMS]
    (sealed / layout.SUMS).write_bytes(sums.render(sums.hash_files(sealed, paths)))
    assert [(p.kind, p.detail) for p in verify(sealed)] == [("manifest", "weights/mini.gguf")]


def test_a_strict_umask_at_unpacking_is_no_problem(sealed: Path) -> None:
    for entry in layout.entries(sealed):
        (sealed / entry.path).chmod(entry.mode & 0o700)
    assert verify(sealed) == ()


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(BadInputError) as caught:
        verify(tmp_path / "gone")
    assert caught.value.key == "file.missing"


HASH = b"0" * 64


@pytest.mark.parametrize(
    "text",
    [
        HASH + b"  cut",
        HASH + b"  a\n" + HASH + b"  a\n",
        HASH + b"  ../a\n",
        HASH + b"  /etc/passwd\n",
        b"\\" + HASH + b"  a\\nb\n",
        HASH + b" a\n",
        HASH[1:] + b"  a\n",
        b"\xff\n",
        HASH + b"  SHA256SUMS\n",
        b"",
    ],
)
def test_damaged_or_hostile_sums_are_refused(text: bytes) -> None:
    assert sums.parse(text) is None


def test_both_forms_of_coreutils_lines_are_read() -> None:
    text = HASH + b"  a b\n" + HASH + b" *c\n"
    assert sums.parse(text) == {"a b": HASH.decode(), "c": HASH.decode()}


@pytest.mark.parametrize(
    "text",
    [
        b"{",
        b"[]",
        b"{}",
        json.dumps({"predicateType": manifest.PREDICATE_TYPE}).encode(),
        json.dumps({"predicateType": manifest.PREDICATE_TYPE, "predicate": {}, "subject": [1]}).encode(),
        json.dumps(
            {"predicateType": manifest.PREDICATE_TYPE, "predicate": {"name": "x", "release": "1"}, "subject": []}
        ).encode(),
    ],
)
def test_damaged_manifests_are_bad_input(text: bytes) -> None:
    with pytest.raises(BadInputError):
        manifest.parse(text, where="manifest.json")


def test_verifying_needs_the_standard_library_only() -> None:
    code = (
        "import sys; import sampan.bundle.verify; "
        "print([m for m in sys.modules if m.split('.')[0] in ('cattrs', 'elftools', 'numpy', 'rich')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
