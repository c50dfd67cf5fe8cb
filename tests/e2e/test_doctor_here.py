"""``sampan doctor --here`` beside a service that is really installed under a real systemd, healthy and broken."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.e2e.systemd_container import Container, wait_for
from tests.e2e.test_install_systemd import base, carry, clean, machine  # noqa: F401  (fixtures)

pytestmark = pytest.mark.e2e
SAMPAN = "/opt/sampan/mini/current/sampan"
UNIT = "sampan-mini.service"


def looked(box: Container, env: dict[str, str] | None = None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(box.check(SAMPAN, "doctor", "--here", "--json", env=env))
    return found


def causes(found: dict[str, Any]) -> list[str]:
    return [one["code"] for one in found["findings"] if one["role"] == "cause" and one["severity"] != "info"]


def change(box: Container, *settings: str) -> None:
    """Set properties of the unit as an administrator would, and start it again."""
    text = "[Service]\n" + "".join(f"{each}\n" for each in settings)
    folder = box.root / f"etc/systemd/system/{UNIT}.d"
    folder.mkdir(exist_ok=True)
    (folder / "mine.conf").write_text(text)
    box.check("systemctl", "daemon-reload")
    box.run("systemctl", "restart", UNIT)


@pytest.fixture
def installed(clean: Container, carry: Callable[..., str]) -> Iterator[Container]:  # noqa: F811
    clean.check(f"{carry()}/install.sh", "--port", "9100")
    yield clean
    clean.run("rm", "-rf", f"/etc/systemd/system/{UNIT}.d")


def test_the_states_of_a_service_are_told_apart(installed: Container) -> None:
    _healthy(installed)
    _behind_a_proxy(installed)
    _throttled(installed)
    _crashing(installed)
    _port_taken(installed)


def _healthy(box: Container) -> None:
    found = looked(box)
    assert causes(found) == []
    facts = found["facts"]
    assert facts["health"].startswith("ready")
    assert facts["port_owner"].startswith("ours")
    assert facts["unit_state"].startswith("active")


def _behind_a_proxy(box: Container) -> None:
    """A proxy that the environment names swallows the health check on loopback."""
    found = looked(box, {"http_proxy": "http://127.0.0.1:9"})
    assert causes(found) == ["here.proxy"]
    assert "127.0.0.1:9" in found["findings"][0]["cause"]
    assert causes(looked(box, {"http_proxy": "http://127.0.0.1:9", "no_proxy": "127.0.0.1"})) == []


def _throttled(box: Container) -> None:
    """A quota of a twentieth of a CPU, and a child that spins."""
    change(box, "CPUQuota=5%", "ExecStartPost=/bin/sh -c 'while :; do :; done &'")
    wait_for(lambda: "here.throttled" in causes(looked(box)))
    found = looked(box)
    one = next(each for each in found["findings"] if each["code"] == "here.throttled")
    assert "0.05" in one["what"]


def _crashing(box: Container) -> None:
    change(box, "Restart=no", "TimeoutStartSec=5")
    broken = box.root / "opt/sampan/mini/releases/1/app/broken"
    broken.write_text("")
    box.run("systemctl", "restart", UNIT)
    found = looked(box)
    broken.unlink()
    assert "here.unit-failed" in causes(found)
    assert "told to fail" in json.dumps(found)


def _port_taken(box: Container) -> None:
    change(box, "Restart=no")
    box.check("systemctl", "stop", UNIT)
    where = "LocalAddr => '127.0.0.1', LocalPort => 9100, ReuseAddr => 1"
    blocker = f"IO::Socket::INET->new({where}, Listen => 1) and sleep 100"
    box.check("systemd-run", "--unit=taker", "perl", "-MIO::Socket::INET", "-e", blocker)
    try:
        wait_for(lambda: "0100007F:238C 00000000:0000 0A" in box.check("cat", "/proc/net/tcp"))
        box.run("systemctl", "start", UNIT)
        assert "here.port" in causes(looked(box))
    finally:
        box.check("systemctl", "stop", "taker")
