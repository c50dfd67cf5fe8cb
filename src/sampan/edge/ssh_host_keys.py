"""Which of a server's host keys to ask for.

A server has a key of each family and shows the one that the client asks for first. A person compares the fingerprint
that ``ssh`` or the console showed, so the same one must be asked for: where known_hosts does not know the host,
Ed25519, then ECDSA, then RSA, as OpenSSH does (ssh_config(5), HostKeyAlgorithms). The fingerprint that a person
accepts may be that of another family: then that one is asked for next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sampan.edge.ssh_address import Address, SshSettings

_FAMILIES = (
    ("ssh-ed25519",),
    ("ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"),
    ("rsa-sha2-512", "rsa-sha2-256", "ssh-rsa"),
)


def orders(address: Address, settings: SshSettings, files: list[str], shown: Sequence[str]) -> Iterator[list[str]]:
    """The algorithms to ask for, one connection after the other; empty: those that known_hosts has.

    ``shown``: the families' names of the keys that the server has shown by then (``ssh-rsa`` for RSA).
    """
    yield [] if files and _known(address, files) else [name for family in _FAMILIES for name in family]
    if settings.accept:
        yield from (list(family) for family in _FAMILIES if not set(family) & set(shown))


def _known(address: Address, files: list[str]) -> bool:
    """Whether known_hosts has a key, authority or revocation of the host. Who reads a damaged one next says so."""
    import asyncssh  # noqa: PLC0415

    try:
        return any(asyncssh.match_known_hosts(files, address.host, address.host, address.port))
    except ValueError:
        return True
