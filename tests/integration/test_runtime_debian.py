"""The private Python from the real archive, run in an empty root folder."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from tests.integration.runtime_parts import HERE, Parts, bundle_root, need_chroot, or_skip, run_in

from sampan.edge.apt_settings import debian_sources
from sampan.edge.net import NetFetcher
from sampan.edge.pip_settings import IndexSettings
from sampan.edge.progress import SilentProgress
from sampan.errors import MissingToolError, VerificationError
from sampan.runtime.debian import fetch_package
from sampan.runtime.index import verified_text
from sampan.runtime.tree import make
from sampan.spec.debian import DebianSource
from sampan.spec.layout import python_command

pytestmark = pytest.mark.integration
ARCHES = ("aarch64", "x86_64")
LIMIT = 45_000_000  # bytes unpacked, compiled library included
IMPORTS = "import ssl, sqlite3, ctypes, asyncio, lzma, bz2, zlib, hashlib, decimal, uuid, sysconfig, sys, site, json"


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    return Parts(tmp_path_factory.mktemp("parts") / "store")


@pytest.mark.parametrize("arch", ARCHES)
def test_the_tree_is_small_plain_and_says_its_versions(parts: Parts, arch: str) -> None:
    made = parts.runtime(arch)
    assert (made.python, made.glibc, made.glibcxx) == ("3.11.2", "2.36", "3.4.30")
    files = [path for path in Path(made.path).rglob("*") if not path.is_dir()]
    assert not [path for path in files if path.is_symlink()]
    assert sum(path.stat().st_size for path in files) <= LIMIT
    assert all(len(package.sha256) == 64 for package in made.packages)


def test_every_elf_of_the_arm_tree_suits_64_kib_pages(parts: Parts) -> None:
    seen = 0
    for path in Path(parts.runtime("aarch64").path).rglob("*"):
        if path.is_dir():
            continue
        with path.open("rb") as stream:
            if stream.read(4) != b"\x7fELF":
                continue
            elf = ELFFile(stream)
            assert elf["e_machine"] == "EM_AARCH64", path
            assert all(s["p_align"] % 65536 == 0 for s in elf.iter_segments() if s["p_type"] == "PT_LOAD"), path
            seen += 1
    assert seen > 40


@pytest.mark.parametrize("arch", ARCHES)
def test_it_runs_in_an_empty_root(parts: Parts, arch: str, tmp_path: Path) -> None:
    need_chroot(arch)
    made = parts.runtime(arch)
    root = bundle_root(tmp_path / "root", made)
    (root / "b" / "app").mkdir()
    facts = (
        "print(json.dumps([sys.path, sys.prefix, sys.base_prefix, sys.executable, site.ENABLE_USER_SITE, "
        "sysconfig.get_paths()['purelib'], ssl.OPENSSL_VERSION, sqlite3.sqlite_version, "
        "ssl.get_default_verify_paths().cafile, asyncio.run(asyncio.sleep(0, 'ran'))]))"
    )
    done = run_in(root, made.python, "-c", f"{IMPORTS}\n{facts}")
    assert done.returncode == 0, done.stderr
    path, prefix, base, executable, user_site, purelib, openssl, sqlite, cafile, ran = json.loads(done.stdout)
    library = "/b/runtime/lib/python3.11"
    assert path == [
        "",
        "/b/runtime/lib/python311.zip",
        library,
        f"{library}/lib-dynload",
        f"{library}/site-packages",
        "/b/app",
    ]
    assert prefix == base == "/b/runtime"
    assert executable == "/b/runtime/bin/python3"
    assert user_site is False
    assert purelib == f"{library}/site-packages"
    assert openssl.startswith("OpenSSL 3.")
    assert sqlite.startswith("3.")
    assert cafile is None
    assert ran == "ran"


@pytest.mark.parametrize("arch", ARCHES)
def test_the_compiled_library_is_used_as_it_lies(parts: Parts, arch: str, tmp_path: Path) -> None:
    need_chroot(arch)
    made = parts.runtime(arch)
    root = bundle_root(tmp_path / "root", made)
    done = run_in(root, made.python, "-v", "-c", "import asyncio, ssl")
    assert done.returncode == 0, done.stderr
    assert "asyncio/__pycache__/base_events.cpython-311.pyc matches" in done.stderr
    assert "# wrote" not in done.stderr


def test_nothing_of_the_host_is_loaded(parts: Parts) -> None:
    made = parts.runtime(HERE)
    code = f"{IMPORTS}\nprint(open('/proc/self/maps').read())"
    argv = [*python_command(made.path, made.python), "-c", code]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    mapped = {line.split(maxsplit=5)[5] for line in done.stdout.splitlines() if ".so" in line}
    assert mapped
    assert [path for path in mapped if not path.startswith(made.path)] == []


def test_equal_packages_give_equal_bytes(parts: Parts, tmp_path: Path) -> None:
    first, second = parts.runtime(HERE), Parts(tmp_path / "again").runtime(HERE)
    assert first.path != second.path

    def contents(root: str) -> dict[str, tuple[int, bytes]]:
        files = (path for path in Path(root).rglob("*") if path.is_file())
        return {str(path.relative_to(root)): (path.stat().st_mode, path.read_bytes()) for path in files}

    assert contents(first.path) == contents(second.path)


def test_a_filled_store_needs_no_network(parts: Parts) -> None:
    made = parts.runtime(HERE)

    def nowhere() -> tuple[DebianSource, ...]:
        raise MissingToolError("runtime.no-mirror", variable="", folder="")

    again = make(
        HERE,
        launcher=parts.root / "launcher",
        runner=parts.runner,
        fetcher=NetFetcher(parts.store, SilentProgress(), settings=IndexSettings(proxy="http://127.0.0.1:9")),
        store=parts.store,
        progress=SilentProgress(),
        sources=nowhere,
    )
    assert again == made


def test_one_changed_letter_breaks_the_signature(parts: Parts, tmp_path: Path) -> None:
    source = or_skip(debian_sources)[0]
    path = or_skip(lambda: parts.fetcher.url(f"{source.uri}/dists/{source.suite}/InRelease", sha256=None))
    assert "Codename: bookworm" in or_skip(lambda: verified_text(path, source, parts.runner))
    bad = tmp_path / "InRelease"
    bad.write_text(path.read_text().replace("Codename: bookworm", "Codename: bookwarm", 1))
    with pytest.raises(VerificationError) as caught:
        verified_text(bad, source, parts.runner)
    assert caught.value.key == "runtime.signature"
    assert "BADSIG" in str(caught.value)


def test_any_package_can_be_fetched_for_another_architecture(parts: Parts) -> None:
    path = or_skip(
        lambda: fetch_package(
            "busybox-static",
            "aarch64",
            sources=debian_sources,
            fetcher=parts.fetcher,
            runner=parts.runner,
            store=parts.store,
            progress=parts.progress,
        )
    )
    assert path.read_bytes().startswith(b"!<arch>\n")
