"""Popular aarch64 wheels that do run on ARMv8.0 give no error for such a machine with the private runtime.

The small ones always (50 MB, the first time from the index), all of them with SAMPAN_TEST_LARGE=1 (240 MB, minutes).
That they run is no hearsay: every module named in the table is imported in an empty root folder under qemu-user, as a
cortex-a57 with pages of 64 KiB, by the private Python.
"""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.integration.runtime_parts import Parts, bundle_root, need_chroot, or_skip, run_in

from sampan.audit.audit import audit
from sampan.survey import known

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.integration
TABLE = Path(__file__).parents[1] / "data" / "audit" / "run_on_armv8_0.toml"
LARGE = os.environ.get("SAMPAN_TEST_LARGE") == "1"
ALL: list[dict[str, Any]] = tomllib.loads(TABLE.read_text(encoding="utf-8"))["wheel"]
WHEELS = [one for one in ALL if LARGE or not one.get("large")]
# One child a module, so that a SIGILL is that module's and no other's.
IMPORT_EACH = """
import importlib, os, sys
sys.path.insert(0, "/b/site")
for name in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        try:
            importlib.import_module(name)
        except BaseException as error:
            print(name, repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    print(name, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    return Parts(tmp_path_factory.mktemp("parts") / "store")


@pytest.fixture(scope="module")
def wheels(parts: Parts) -> list[Path]:
    fetch = parts.fetcher.pypi
    return or_skip(lambda: [fetch(one["requirement"], file_name=one["name"], sha256=one["sha256"]) for one in WHEELS])


def test_the_list_is_long_enough_to_mean_something() -> None:
    assert len(ALL) >= 40
    assert len([one for one in ALL if not one.get("large")]) >= 30
    assert len([one for one in ALL if "import" in one]) >= 30


def test_none_of_them_gives_an_error(parts: Parts, wheels: list[Path]) -> None:
    runtime = Path(parts.runtime("aarch64").path)
    report = audit(wheels, known.load("kylin-v10-phytium-d2000"), runtime=runtime)
    assert report.elf_files > len(wheels)
    assert [(one.code, one.path, one.values) for one in report.findings if one.severity == "error"] == []


def test_they_do_run(parts: Parts, wheels: list[Path], tmp_path: Path) -> None:
    need_chroot("aarch64")
    runtime = parts.runtime("aarch64")
    root = bundle_root(tmp_path / "root", runtime)
    names = [one["import"] for one in WHEELS if "import" in one]
    for one, wheel in zip(WHEELS, wheels, strict=True):
        if "import" in one:
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(root / "b" / "site")
    done = run_in(root, runtime.python, "-c", IMPORT_EACH, *names)
    assert done.stdout.splitlines() == [f"{name} 0" for name in names], done.stderr
