"""The Debian mirror comes from the user's apt settings or from SAMPAN_DEBIAN_MIRROR, never from us."""

from __future__ import annotations

from pathlib import Path

import pytest

from sampan.edge.apt_settings import debian_sources
from sampan.errors import ExitCode, MissingToolError, UsageError
from sampan.spec.debian import DebianSource

DEB822 = """\
# comment
Types: deb deb-src
URIs: http://mirror.example/debian/
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: https://sec.example/debian-security
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
Enabled: no
URIs: https://off.example/debian
Suites: bookworm
Components: main

Types: deb
URIs: https://deb.node.example/node_20.x
Suites: nodistro
Components: main
Signed-By: /usr/share/keyrings/node.gpg
"""


def _apt(tmp_path: Path, **files: str) -> Path:
    folder = tmp_path / "sources.list.d"
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        stem, _, ending = name.rpartition("_")
        path = tmp_path / "sources.list" if name == "sources_list" else folder / f"{stem}.{ending}"
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_deb822_files_are_read(tmp_path: Path) -> None:
    found = debian_sources({}, _apt(tmp_path, debian_sources=DEB822))
    ring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    assert found == (
        DebianSource("http://mirror.example/debian", "bookworm", ("main",), ring),
        DebianSource("http://mirror.example/debian", "bookworm-updates", ("main",), ring),
        DebianSource("https://sec.example/debian-security", "bookworm-security", ("main",), ring),
    )


def test_one_line_files_are_read_and_third_parties_left_out(tmp_path: Path) -> None:
    text = (
        "# deb http://old.example/debian bookworm main\n"
        "deb [arch=amd64 signed-by=/k/debian-archive-keyring.gpg] http://m.example/debian bookworm main\n"
        "deb-src http://m.example/debian bookworm main\n"
        "deb [signed-by=/etc/apt/keyrings/docker.gpg] https://docker.example/linux/debian bookworm main\n"
        "deb https://pg.example/pub/repos/apt bookworm-pgdg main\n"
        "deb http://m.example/debian bookworm non-free  # no main\n"
        "deb cdrom:[Debian]/ bookworm main\n"
    )
    found = debian_sources({}, _apt(tmp_path, sources_list=text))
    assert [(source.uri, source.suite) for source in found] == [("http://m.example/debian", "bookworm")]


@pytest.mark.parametrize(
    ("suite", "security"),
    [("trixie", "trixie-security"), ("bullseye", "bullseye-security"), ("stable", "buster/updates")],
)
def test_another_release_of_debian_lends_its_mirror(tmp_path: Path, suite: str, security: str) -> None:
    text = f"deb http://m.example/debian {suite} main\ndeb http://s.example/debian-security {security} main\n"
    found = debian_sources({}, _apt(tmp_path, sources_list=text))
    assert [source.suite for source in found] == ["bookworm", "bookworm-security"]


def test_ubuntu_has_no_debian_mirror_and_is_told_what_to_set(tmp_path: Path) -> None:
    text = "Types: deb\nURIs: http://archive.ubuntu.example/ubuntu\nSuites: noble noble-updates\nComponents: main\n"
    with pytest.raises(MissingToolError) as caught:
        debian_sources({}, _apt(tmp_path, ubuntu_sources=text))
    assert caught.value.key == "runtime.no-mirror"
    assert caught.value.exit_code is ExitCode.MISSING_TOOL
    assert "SAMPAN_DEBIAN_MIRROR" in str(caught.value)


def test_no_apt_at_all_is_told_the_same(tmp_path: Path) -> None:
    with pytest.raises(MissingToolError):
        debian_sources({}, tmp_path / "nowhere")


def test_the_variable_wins_over_apt(tmp_path: Path) -> None:
    environ = {"SAMPAN_DEBIAN_MIRROR": "https://x.example/debian-security/ https://x.example/debian"}
    found = debian_sources(environ, _apt(tmp_path, debian_sources=DEB822))
    assert [(source.uri, source.suite) for source in found] == [
        ("https://x.example/debian", "bookworm"),
        ("https://x.example/debian-security", "bookworm-security"),
    ]


def test_the_keyring_can_be_named(tmp_path: Path) -> None:
    environ = {"SAMPAN_DEBIAN_MIRROR": "https://x.example/debian", "SAMPAN_DEBIAN_KEYRING": "/k.gpg"}
    assert debian_sources(environ, tmp_path)[0].keyring == "/k.gpg"


def test_a_bad_variable_is_refused_without_showing_a_password(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        debian_sources({"SAMPAN_DEBIAN_MIRROR": "ftp://me:secret@x.example/debian"}, tmp_path)
    assert caught.value.key == "runtime.bad-mirror"
    assert "secret" not in str(caught.value)
    assert "x.example" in str(caught.value)
