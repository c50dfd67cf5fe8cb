"""install.sh and start.sh under every shell of the targets, with whole, tampered and hostile bundles."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest
from tests.unit.install.conftest import make_bundle, make_plan, seal

SCRIPTS = Path(str(resources.files("sampan"))) / "data" / "target"
#: dash is Debian's sh, bash in POSIX mode is Kylin's, busybox (with its own sha256sum, find, …) that of small systems
SHELLS = {"dash": ["dash"], "bash": ["bash", "--posix"], "busybox": ["busybox", "sh"]}

APPLETS = ("sha256sum", "find", "grep", "sed", "cut", "sort", "uniq", "tr", "wc", "uname", "readlink", "sh")


@pytest.fixture(params=sorted(SHELLS))
def shell(request: pytest.FixtureRequest) -> list[str]:
    """One shell of the targets."""
    words = SHELLS[request.param]
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed here")
    return words


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A bundle with its scripts, in a folder with spaces in its name."""
    bundle = make_bundle(tmp_path / "a folder" / "mini-1", make_plan())
    for name in ("install.sh", "start.sh"):
        shutil.copy(SCRIPTS / name, bundle / name)
    return seal(bundle)


def run(
    shell: list[str],
    folder: Path,
    *words: str,
    script: str = "install.sh",
    lang: str = "en",
    cwd: str = "/",
    **more: str,
) -> subprocess.CompletedProcess[str]:
    """Run a script from elsewhere; BusyBox runs with its own tools only."""
    environ = {"PATH": os.environ["PATH"], "SAMPAN_LANG": lang, **more}
    if shell[0] == "busybox":
        environ["PATH"] = str(applets(folder))
    argv = [shutil.which(shell[0]) or shell[0], *shell[1:], str(folder / script), *words]
    return subprocess.run(argv, cwd=cwd, env=environ, capture_output=True, text=True, check=False)


def applets(folder: Path) -> Path:
    """A folder of links to BusyBox under the names of the tools, outside the bundle."""
    tools = folder.parent / "applets"
    if not tools.is_dir():
        tools.mkdir()
        for name in APPLETS:
            (tools / name).symlink_to(shutil.which("busybox") or "busybox")
    return tools


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file of the bundle."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_whole_bundle_is_handed_over_with_its_options(shell: list[str], folder: Path) -> None:
    before = snapshot(folder)
    done = run(shell, folder, "--prefix", "/srv/my models", "--port=9000", "--no-service")
    assert (done.returncode, done.stderr) == (0, "")
    handed = f"<install><--prefix></srv/my models><--port><9000><--no-service>{folder.resolve()}\n"
    assert done.stdout.endswith(handed)
    assert "Checking 5 files" in done.stdout
    assert snapshot(folder) == before


def test_without_options_none_are_handed_over(shell: list[str], folder: Path) -> None:
    assert run(shell, folder).stdout.endswith(f"<install>{folder.resolve()}\n")


def test_a_relative_prefix_counts_from_where_the_person_stands(
    shell: list[str], folder: Path, tmp_path: Path
) -> None:
    done = run(shell, folder, "--prefix", "here", cwd=str(tmp_path))
    assert f"<--prefix><{tmp_path}/here>" in done.stdout


def test_the_list_can_be_compared_with_the_senders(shell: list[str], folder: Path) -> None:
    sent = subprocess.run(["sha256sum", folder / "SHA256SUMS"], capture_output=True, text=True, check=True).stdout
    assert sent.split()[0] in run(shell, folder).stdout


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_changed_file_is_refused_before_anything_runs(shell: list[str], folder: Path, lang: str) -> None:
    (folder / "weights/tiny model.gguf").write_bytes(b"GGUG" * 1000)
    done = run(shell, folder, lang=lang)
    assert done.returncode == 9
    assert "weights/tiny model.gguf" in done.stderr
    assert ("不一致" if lang == "zh" else "Not as they were packed") in done.stderr
    assert "<install>" not in done.stdout


@pytest.mark.parametrize(("count", "shown"), [(10, 10), (11, 10), (30, 10)])
def test_many_changed_files_are_counted(shell: list[str], folder: Path, count: int, shown: int) -> None:
    for number in range(count):
        (folder / f"part-{number}").write_text("whole")
    seal(folder)
    for number in range(count):
        (folder / f"part-{number}").write_text("cut")
    done = run(shell, folder)
    assert done.returncode == 9
    lines = done.stderr.splitlines()
    assert len([line for line in lines if line.startswith("part-")]) == shown
    assert (f"… {count} in all" in lines) == (count > shown)
    assert len(lines) == shown + 2 + (count > shown)


def test_a_changed_program_is_not_run(shell: list[str], folder: Path) -> None:
    (folder / "sampan").write_text("#!/bin/sh\ntouch ../was-here\n")
    assert run(shell, folder).returncode == 9
    assert not (folder.parent / "was-here").exists()


@pytest.mark.parametrize("name", ["extra.so", "weights/.hidden", "weights/two words", "SHA256SUMS.bak"])
def test_a_file_that_is_not_listed_is_refused_by_name(shell: list[str], folder: Path, name: str) -> None:
    (folder / name).write_text("x")
    done = run(shell, folder)
    assert done.returncode == 9
    assert name in done.stderr.splitlines()


def test_a_missing_file_is_named(shell: list[str], folder: Path) -> None:
    (folder / "weights/tiny model.gguf").unlink()
    done = run(shell, folder)
    assert done.returncode == 9
    assert "weights/tiny model.gguf" in done.stderr.splitlines()


def test_links_and_devices_are_refused(shell: list[str], folder: Path) -> None:
    (folder / "weights/link").symlink_to("/etc/passwd")
    os.mkfifo(folder / "pipe")
    done = run(shell, folder)
    assert done.returncode == 9
    assert {"./weights/link", "./pipe"} <= set(done.stderr.splitlines())


@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", "weights/../../x", "a//b", "./sampan"])
def test_a_list_that_leaves_the_folder_is_refused(shell: list[str], folder: Path, path: str) -> None:
    with (folder / "SHA256SUMS").open("a") as stream:
        stream.write(f"{'0' * 64}  {path}\n")
    done = run(shell, folder)
    assert done.returncode == 9
    assert path in done.stderr


def test_a_list_with_other_lines_is_refused(shell: list[str], folder: Path) -> None:
    with (folder / "SHA256SUMS").open("a") as stream:
        stream.write("d41d8cd98f00b204e9800998ecf8427e  sampan\n")
    assert run(shell, folder).returncode == 9


def test_a_hostile_name_cannot_play_with_the_terminal(shell: list[str], folder: Path) -> None:
    (folder / "x\x1b[2Jy\nSHA256SUMS").write_text("x")
    done = run(shell, folder)
    assert done.returncode == 9
    assert "\x1b" not in done.stderr


def test_the_wrong_machine_is_told_so(shell: list[str], tmp_path: Path) -> None:
    foreign = replace(make_plan(), arch="s390x")
    bundle = make_bundle(tmp_path / "mini-1", foreign)
    shutil.copy(SCRIPTS / "install.sh", bundle)
    done = run(shell, seal(bundle))
    assert done.returncode == 4
    assert "for s390x" in done.stderr
    assert os.uname().machine in done.stderr


@pytest.mark.parametrize("name", ["SHA256SUMS", "plan.json", "sampan"])
def test_a_folder_that_is_no_whole_bundle_is_told_so(shell: list[str], folder: Path, name: str) -> None:
    (folder / name).unlink()
    done = run(shell, folder)
    assert done.returncode == 3
    assert name in done.stderr


def test_a_program_that_lost_its_modes_is_explained(shell: list[str], folder: Path) -> None:
    (folder / "sampan").chmod(0o644)
    done = run(shell, folder)
    assert done.returncode == 4
    assert "noexec" in done.stderr


def test_a_missing_tool_is_named(folder: Path) -> None:
    environ = {"PATH": "/nonexistent", "SAMPAN_LANG": "en"}
    done = subprocess.run(
        ["/bin/sh", folder / "install.sh"], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 5
    assert "sha256sum" in done.stderr


@pytest.mark.parametrize(
    "words", [["--bad"], ["--prefix"], ["--port", "x"], ["--port=0"], ["--port=65536"], ["more"]]
)
def test_wrong_options_end_with_2(shell: list[str], folder: Path, words: list[str]) -> None:
    assert run(shell, folder, *words).returncode == 2


def test_help_is_in_both_languages_and_does_nothing(shell: list[str], folder: Path) -> None:
    assert "--no-service" in run(shell, folder, "--help").stdout
    assert "安装位置" in run(shell, folder, "--help", lang="zh_CN.UTF-8").stdout
    assert "Usage" in run(shell, folder, "--help", lang="zh_CN.GB18030").stdout


def test_start_explains_itself_and_what_may_not_run(shell: list[str], folder: Path) -> None:
    (folder / "sampan").write_text("#!/bin/sh\necho never\n")
    (folder / "sampan").chmod(0o644)
    assert "Usage: ./start.sh" in run(shell, folder, "--help", script="start.sh").stdout
    assert "用法：./start.sh" in run(shell, folder, "-h", script="start.sh", lang="zh").stdout
    done = run(shell, folder, script="start.sh")
    assert (done.returncode, done.stdout) == (4, "")
    assert "noexec" in done.stderr


def test_start_serves_from_anywhere_and_through_links(shell: list[str], folder: Path, tmp_path: Path) -> None:
    launcher = folder / "sampan"
    launcher.write_text('#!/bin/sh\nprintf "%s" "$0"; printf "<%s>" "$@"\n')
    expected = f"{folder.resolve()}/sampan<serve><--port><9000>"
    assert run(shell, folder, "--port", "9000", script="start.sh").stdout == expected
    (tmp_path / "links").mkdir()
    (tmp_path / "links/absolute").symlink_to(folder / "start.sh")
    (tmp_path / "links/relative").symlink_to("absolute")
    (tmp_path / "current").symlink_to(folder)
    assert run(shell, tmp_path / "links", "--port", "9000", script="relative").stdout == expected
    assert run(shell, tmp_path / "current", "--port", "9000", script="start.sh").stdout == expected


@pytest.mark.parametrize("script", ["start.sh", "install.sh"])
def test_scripts_run_by_a_bare_name_in_their_own_folder(folder: Path, script: str) -> None:
    done = subprocess.run(["sh", script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "<serve>" in done.stdout or "<install>" in done.stdout


def test_the_scripts_please_shellcheck() -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed here")
    done = subprocess.run(
        ["shellcheck", SCRIPTS / "install.sh", SCRIPTS / "start.sh"], capture_output=True, text=True, check=False
    )
    assert done.stdout == ""


def test_every_option_is_handed_over(shell: list[str], folder: Path) -> None:
    words = (
        "--host",
        "0.0.0.0",
        "--memory=4G",
        "--cpus",
        "2",
        "--cpu-list=0-3",
        "--script",
        "--unsigned",
        "--tls-cert=/c",
        "--tls-key",
        "/k",
    )
    done = run(shell, folder, *words, "--allow-downgrade")
    handed = "<--host><0.0.0.0><--memory><4G><--cpus><2><--cpu-list><0-3><--tls-cert></c><--tls-key></k>"
    handed += "<--script><--unsigned><--allow-downgrade>"
    assert f"<install>{handed}" in done.stdout


def test_a_prefix_inside_of_the_bundle_is_refused_before_anything_is_read(shell: list[str], folder: Path) -> None:
    done = run(shell, folder, "--prefix", str(folder / "here"))
    assert done.returncode == 4
    assert "inside of this bundle" in done.stderr
    assert "Checking" not in done.stdout


def test_the_page_for_the_target_is_one_page_in_two_languages() -> None:
    text = (SCRIPTS / "README.txt").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 90
    for command in ("./start.sh", "./install.sh", "./sampan status", "./sampan uninstall", "sha256sum -c SHA256SUMS"):
        assert text.count(command) == 2 or command in ("./start.sh", "./install.sh")
