"""A signature is checked on Debian 11 by its own OpenSSL 1.1.1, as install.sh and as README.txt do it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest
from tests.e2e import systemd_container
from tests.unit.install.conftest import make_bundle, make_plan, seal
from tests.unit.install.test_install_signed import ANN, BOB, sign

pytestmark = pytest.mark.integration
SCRIPTS = Path(str(resources.files("sampan"))) / "data" / "target"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A Debian tree, and a signed bundle in its /tmp with the keys beside it."""
    lacking = systemd_container.missing()
    tree = None if lacking else systemd_container.tree()
    if tree is None:
        pytest.skip(lacking or "the Debian mirror cannot be reached")
    inside = tree / "tmp" / tmp_path.name
    bundle = make_bundle(inside / "mini-1", make_plan())
    for name in ("install.sh", "README.txt"):
        shutil.copy(SCRIPTS / name, bundle / name)
    sign(seal(bundle), ANN)
    (inside / "KEY.pub").write_text(ANN.public.pem)
    (inside / "other.pub").write_text(BOB.public.pem)
    yield tree, inside
    shutil.rmtree(inside)


def run(place: tuple[Path, Path], command: str) -> subprocess.CompletedProcess[str]:
    tree, inside = place
    folder = f"/{inside.relative_to(tree)}"
    words = ["chroot", str(tree), "/bin/sh", "-c", f"cd {folder} && {command}"]
    environ = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "SAMPAN_LANG": "en"}
    return subprocess.run(words, env=environ, capture_output=True, text=True, check=False)


def test_it_really_is_openssl_1_1_1(place: tuple[Path, Path]) -> None:
    assert run(place, "openssl version").stdout.startswith("OpenSSL 1.1.1")


def test_install_sh_takes_the_right_key_and_refuses_another(place: tuple[Path, Path]) -> None:
    right = run(place, "mini-1/install.sh --key KEY.pub")
    assert (right.returncode, right.stderr) == (0, "")
    assert "<install>" in right.stdout
    wrong = run(place, "mini-1/install.sh --key other.pub")
    assert wrong.returncode == 9
    assert "<install>" not in wrong.stdout


def by_hand() -> str:
    """The commands of the README's last part, as a person types them."""
    text = (SCRIPTS / "README.txt").read_text(encoding="utf-8")
    part = text[text.index("The signature by hand") :].splitlines()[1:]
    return "\n".join(part).replace("KEY.pub", "$KEY")


def test_the_readmes_commands_find_right_and_wrong(place: tuple[Path, Path]) -> None:
    right = run(place, f"KEY=$PWD/KEY.pub; cd mini-1\n{by_hand()}")
    assert "Verified OK" in right.stdout
    assert right.stdout.rstrip().endswith("whole")
    wrong = run(place, f"KEY=$PWD/other.pub; cd mini-1\n{by_hand()}")
    assert "Verification Failure" in wrong.stdout
    (place[1] / "mini-1" / "plan.json").write_text("{}")
    assert "whole" not in run(place, f"KEY=$PWD/KEY.pub; cd mini-1\n{by_hand()}").stdout.splitlines()
