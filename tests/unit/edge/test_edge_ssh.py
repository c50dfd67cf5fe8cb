"""How an ssh address is written."""

from __future__ import annotations

import sys

import pytest

from sampan.edge.ssh import Address, SshSettings, parse, run_script
from sampan.errors import ExitCode, MissingToolError, UsageError


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("ssh://ops@10.0.0.7:2222/", Address("10.0.0.7", 2222, "ops")),
        ("ssh://127.0.0.1:54023", Address("127.0.0.1", 54023)),
        ("ops@bastion", Address("bastion", 22, "ops")),
        ("ssh://ops@[::1]:2222", Address("::1", 2222, "ops")),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    assert parse(text) == address
    assert parse(f"ssh://{address}") == address


@pytest.mark.parametrize(
    "text",
    ["ssh://", "ssh://ops:secret@host", "ssh://host:99999", "ssh://host:x", "ssh://host/a", "ssh://ops@-oProxy"],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert (caught.value.key, caught.value.exit_code) == ("ssh.address", ExitCode.USAGE)


def test_without_asyncssh_the_other_way_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an installed bundle."""
    monkeypatch.setitem(sys.modules, "asyncssh", None)
    with pytest.raises(MissingToolError) as caught:
        run_script(Address("127.0.0.1", 22), "", SshSettings())
    assert caught.value.key == "ssh.no-library"
    assert "--script" in caught.value.hint
