"""The service's own system user and group, by whatever tools the target has."""

from __future__ import annotations

from contextlib import suppress

from sampan.errors import MissingToolError
from sampan.install.machine import Machine, account_exists

_NO_SHELLS = ("usr/sbin/nologin", "sbin/nologin", "bin/false")


def ensure(machine: Machine, user: str) -> bool:
    """Make the user and group unless they exist; whether the user was made now.

    Raises ServiceError where the tool fails, MissingToolError where the target has none.
    """
    if not _group_exists(machine, user):
        _first(machine, ("groupadd", "--system", user), ("addgroup", "-S", user))
    if exists(machine, user):
        return False
    shell = next((f"/{path}" for path in _NO_SHELLS if (machine.root / path).exists()), "/bin/false")
    _first(
        machine,
        (
            "useradd",
            "--system",
            "--gid",
            user,
            "--no-create-home",
            "--home-dir",
            "/nonexistent",
            "--shell",
            shell,
            user,
        ),
        ("adduser", "-S", "-D", "-H", "-h", "/nonexistent", "-s", shell, "-G", user, user),
    )
    return True


def exists(machine: Machine, user: str) -> bool:
    """Whether there is such a user, here or in a directory service."""
    return account_exists(machine.read("etc/passwd"), user) or machine.attempt("getent", "passwd", user)


def ids(machine: Machine, user: str) -> tuple[int, int] | None:
    """The numbers of the user and its group; None where there is no such user."""
    lines = machine.read("etc/passwd").splitlines()
    with suppress(MissingToolError):
        lines += machine.run("getent", "passwd", user).output.splitlines()
    for line in lines:
        found = line.split(":")
        if found[0] == user and len(found) > 3 and found[2].isdecimal() and found[3].isdecimal():
            return int(found[2]), int(found[3])
    return None


def remove(machine: Machine, user: str) -> bool:
    """Remove the user and its group; whether both are gone now."""
    _any(machine, ("userdel", user), ("deluser", user))
    if _group_exists(machine, user):  # userdel removes it where the target's login.defs says so
        _any(machine, ("groupdel", user), ("delgroup", user))
    return not account_exists(machine.read("etc/passwd"), user) and not _group_exists(machine, user)


def _group_exists(machine: Machine, user: str) -> bool:
    return account_exists(machine.read("etc/group"), user) or machine.attempt("getent", "group", user)


def _first(machine: Machine, shadow: tuple[str, ...], busybox: tuple[str, ...]) -> None:
    """Run shadow's tool, or BusyBox's where there is none."""
    try:
        machine.must(*shadow)
    except MissingToolError:
        machine.must(*busybox)


def _any(machine: Machine, *commands: tuple[str, ...]) -> None:
    for command in commands:
        if machine.attempt(*command):
            return
