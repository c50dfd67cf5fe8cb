"""``sampan install`` as a user types it: what it asks of the installation."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes.typed import typed
from tests.unit.install.conftest import make_bundle, make_plan

from sampan.install import steps
from sampan.install.job import Hands
from sampan.install.model import Installed, InstallOptions, user_home


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[InstallOptions]:
    """What would have been installed."""
    found: list[InstallOptions] = []

    def note(options: InstallOptions, _hands: Hands) -> Installed:
        found.append(options)
        return Installed("mini", 1, "installed", "/x", False, "127.0.0.1", 8080)

    monkeypatch.setenv("SAMPAN_BUNDLE", str(make_bundle(tmp_path / "mini-1", make_plan())))
    monkeypatch.setattr(steps, "install", note)
    return found


def test_files_alone_go_home_where_root_is_not_at_work(
    asked: list[InstallOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    for user, words in ((1000, ["--no-service"]), (0, ["--no-service"]), (1000, []), (0, ["--user"])):
        monkeypatch.setattr("os.geteuid", lambda user=user: user)
        assert typed("install", *words) == 0
    home = user_home() / "mini"
    assert [options.prefix for options in asked] == [home, None, None, home]


def test_consuming_is_handed_on(asked: list[InstallOptions]) -> None:
    assert typed("install", "--consume") == 0
    assert typed("install") == 0
    assert [options.consume for options in asked] == [True, False]
