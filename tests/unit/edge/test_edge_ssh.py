"""How an ssh address is written."""

from __future__ import annotations

import pytest

from sampan.edge.ssh import Address, parse
from sampan.errors import ExitCode, UsageError


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
