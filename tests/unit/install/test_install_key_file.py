"""API keys that were made before, or outlive, the installation; and an open address without any."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.unit.install.conftest import Target, make_bundle, make_plan, put_keys

from sampan.errors import IncompatibleError, ServiceError
from sampan.gateway import keys
from sampan.install import key_file, lookup
from sampan.install.model import RECORD
from sampan.install.steps import install
from sampan.install.uninstall import uninstall

SERVICE, ROOT = (999, 999), (0, 0)  # the account that the pretended useradd makes


class Owners:
    """Who owns which file, as chown would have it: a test may not give files away."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.given: dict[str, list[tuple[int, int]]] = {}
        monkeypatch.setattr("os.fchown", self._chown)
        monkeypatch.setattr("sampan.install.key_file._owner", self._owner)

    def _chown(self, handle: int, user: int, group: int) -> None:
        self.given.setdefault(str(Path(f"/proc/self/fd/{handle}").readlink()), []).append((user, group))

    def _owner(self, handle: int) -> int:
        return self.given.get(str(Path(f"/proc/self/fd/{handle}").readlink()), [ROOT])[-1][0]


@pytest.fixture
def owners(target: Target, monkeypatch: pytest.MonkeyPatch) -> Owners:
    return Owners(monkeypatch)


def own(target: Target) -> Path:
    return target.root / "etc/sampan/mini/keys.json"


def test_keys_made_before_the_installation_become_the_services(target: Target, bundle: Path, owners: Owners) -> None:
    path = put_keys(own(target))
    install(target.options(bundle), target.hands())
    assert owners.given[str(path)] == [SERVICE]
    assert path.stat().st_mode & 0o777 == 0o600
    assert [folder.stat().st_mode & 0o011 for folder in (path.parent, path.parent.parent)] == [0o011] * 2
    install(target.options(bundle, port=9200), target.hands())
    assert owners.given[str(path)] == [SERVICE], "once is enough"


def test_keys_named_at_the_installation_are_taken_from_root_only(
    target: Target, bundle: Path, owners: Owners, tmp_path: Path
) -> None:
    path = put_keys(tmp_path / "mine/keys.json")
    owners.given[str(path)] = [(1000, 1000)]
    install(target.options(bundle, keys=str(path)), target.hands())
    assert owners.given[str(path)] == [(1000, 1000)]
    owners.given[str(path)] = [ROOT]
    install(target.options(bundle), target.hands())
    assert owners.given[str(path)] == [ROOT, SERVICE]
    assert path.parent.stat().st_mode & 0o011 == 0


def test_what_a_link_names_stays_its_owners(target: Target, bundle: Path, owners: Owners, tmp_path: Path) -> None:
    path = put_keys(own(target))
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    install(target.options(bundle), target.hands())
    assert not {str(path), str(tmp_path / "elsewhere")} & owners.given.keys()


def test_uninstall_gives_the_keys_back_to_root(target: Target, bundle: Path, owners: Owners) -> None:
    path = put_keys(own(target))
    install(target.options(bundle), target.hands())
    gone = uninstall(lookup.find(None, prefix=target.prefix), target.hands())
    assert owners.given[str(path)] == [SERVICE, ROOT]
    assert str(path.parent) in gone.kept


@pytest.mark.parametrize("named", [False, True])
def test_a_first_installation_that_fails_gives_them_back_too(
    target: Target, bundle: Path, owners: Owners, tmp_path: Path, named: bool
) -> None:
    path = put_keys(tmp_path / "mine/keys.json" if named else own(target))
    target.selftest_error = ServiceError("gateway.handover-selftest")
    with pytest.raises(ServiceError):
        install(target.options(bundle, keys=str(path) if named else None), target.hands())
    assert owners.given[str(path)] == [SERVICE, ROOT]
    assert not (target.prefix / RECORD).exists()


def test_an_upgrade_that_fails_leaves_them_with_the_service(
    target: Target, bundle: Path, owners: Owners, tmp_path: Path
) -> None:
    path = put_keys(own(target))
    install(target.options(bundle), target.hands())
    target.selftest_error = ServiceError("gateway.handover-selftest")
    with pytest.raises(ServiceError):
        install(target.options(make_bundle(tmp_path / "mini-2", make_plan(release=2))), target.hands())
    assert owners.given[str(path)] == [SERVICE]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "somewhere"])
@pytest.mark.parametrize("revoked", [None, 1])
def test_an_open_address_without_a_key_is_refused_before_anything_is_stopped(
    target: Target, bundle: Path, host: str, revoked: int | None
) -> None:
    install(target.options(bundle), target.hands())
    if revoked:
        put_keys(own(target), revoked=revoked)
    before, log = target.files(), len(target.systemd.log)
    with pytest.raises(IncompatibleError) as caught:
        install(target.options(bundle, host=host, port=80), target.hands())
    assert "no-keys,port-low" in caught.value.hint.replace("port-low,no-keys", "no-keys,port-low")
    assert host in caught.value.message
    assert target.files() == before
    assert not any(words[1] in ("stop", "restart") for words in target.systemd.log[log:])


def test_an_open_address_with_a_key_is_installed(target: Target, bundle: Path) -> None:
    put_keys(own(target))
    assert install(target.options(bundle, host="0.0.0.0"), target.hands()).host == "0.0.0.0"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"keys": [1]}', '{"keys": 3}', "{}", "\xff\xfe"])
def test_damaged_keys_are_refused_on_any_address(target: Target, bundle: Path, text: str) -> None:
    put_keys(own(target)).write_text(text, encoding="latin-1")
    with pytest.raises(IncompatibleError, match="keys") as caught:
        install(target.options(bundle), target.hands())
    assert "keys-unfit" in caught.value.hint
    assert install(target.options(bundle, service=False), target.hands()).release == 1


def test_the_state_of_a_file_is_what_the_gateway_makes_of_it(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "keys.json"
    assert key_file.state(path) == "absent"
    made = keys.make(keys.Key("", "somebody", ""))[0]
    keys.save(path, [made])
    assert key_file.state(path) == "set"
    keys.save(path, keys.revoke([made], made.id, 5))
    assert key_file.state(path) == "none"
    path.chmod(0o640)
    assert key_file.state(path) == "unfit"


def test_the_folder_of_new_keys_may_be_entered_under_a_closed_umask(tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        keys.save(tmp_path / "sampan/mini/keys.json", [])
    finally:
        os.umask(old)
    assert (tmp_path / "sampan").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "sampan/mini").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "sampan/mini/keys.json").stat().st_mode & 0o777 == 0o600
