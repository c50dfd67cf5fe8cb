"""A change of the engine's source fits exactly, or the build stops before anything is compiled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.build.conftest import TOP, archive

from sampan.build import flags, patches
from sampan.build.patches import apply, notice, parse, texts
from sampan.build.pins import engine_pin
from sampan.build.source import unpack
from sampan.build.toolchain import Compiler
from sampan.errors import BuildError, ExitCode

OLD = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
PATCH = """\
Why this is done.

--- a/src/a.c
+++ b/src/a.c
@@ -1,3 +1,4 @@
 one
-two
+TWO
+more
 three
@@ -6,2 +7,1 @@
 six
-seven
"""
NEW = "one\nTWO\nmore\nthree\nfour\nfive\nsix\n"


def _tree(root: Path, text: str = OLD) -> Path:
    (root / "src").mkdir(parents=True)
    (root / "src/a.c").write_text(text, encoding="utf-8", newline="")
    return root


def test_every_hunk_is_applied_at_its_line(tmp_path: Path) -> None:
    apply("p", PATCH, _tree(tmp_path))
    assert (tmp_path / "src/a.c").read_text(encoding="utf-8") == NEW


def _refused(patch: str, root: Path) -> BuildError:
    before = (root / "src/a.c").read_bytes()
    with pytest.raises(BuildError) as caught:
        apply("p", patch, root)
    assert caught.value.key == "build.patch"
    assert caught.value.exit_code == ExitCode.BUILD_FAILED
    assert (root / "src/a.c").read_bytes() == before
    return caught.value


@pytest.mark.parametrize(
    "source",
    [
        "zero\n" + OLD,  # moved by a line: other tools would find it all the same
        OLD.replace("three", "3"),
        OLD.replace("\n", "\r\n"),
        OLD.replace("seven", "SEVEN"),  # only the second hunk does not fit
        "one\n",
        NEW,  # applied already
        "",
    ],
)
def test_source_that_is_not_what_the_patch_was_made_for_is_refused(source: str, tmp_path: Path) -> None:
    assert "src/a.c" in _refused(PATCH, _tree(tmp_path, source)).message


@pytest.mark.parametrize(
    "patch",
    [
        "",
        "words alone\n",
        PATCH.replace("+more\n", ""),  # the hunk's head counts more
        PATCH[: PATCH.index(" three")],
        PATCH.replace("src/a.c", "../a.c"),
        PATCH.replace("src/a.c", "/etc/passwd"),
        PATCH.replace("+++ b/", "+++ "),
        PATCH.replace("src/a.c", "src/gone.c"),
        "--- a/src/a.c",
        "--- a/src/a.c\n+++ b/src/a.c\n",
    ],
)
def test_a_damaged_patch_is_refused(patch: str, tmp_path: Path) -> None:
    _refused(patch, _tree(tmp_path))


def test_an_unfit_patch_leaves_no_source_that_could_be_compiled(tmp_path: Path) -> None:
    files = {"src/a.c": b"int a;\n"}
    pin = replace(engine_pin(), top=TOP, omit=(), changes={"p": PATCH})
    with pytest.raises(BuildError):
        unpack(archive(tmp_path / "s.tar.gz", files), pin, tmp_path / "source")
    assert not (tmp_path / "source").exists()


def test_the_source_is_unpacked_with_its_changes(tmp_path: Path) -> None:
    pin = replace(engine_pin(), top=TOP, omit=(), changes={"p": PATCH})
    unpack(archive(tmp_path / "s.tar.gz", {"src/a.c": OLD.encode()}), pin, tmp_path / "source")
    assert (tmp_path / "source/src/a.c").read_text(encoding="utf-8") == NEW


def test_a_changed_patch_changes_the_builds_key() -> None:
    pin, compiler = engine_pin(), Compiler(Path("/z"), "1")
    arm = pin.architecture("aarch64")
    assert flags.tree_key(pin, compiler, arm) != flags.tree_key(replace(pin, changes={}), compiler, arm)


def test_our_own_patches_are_whole_and_the_notice_shows_them() -> None:
    assert texts()
    for name, text in texts().items():
        assert [path for path, hunks in parse(name, text) if hunks]
        assert text in notice(texts())
    assert engine_pin().commit in notice(texts())
    assert notice({}) == ""


def test_every_patch_is_applied_through_the_pin() -> None:
    assert engine_pin().changes == patches.texts()
