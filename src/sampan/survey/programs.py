"""Versions that only a program itself can tell."""

from __future__ import annotations

import re
import shutil
from typing import NamedTuple

from sampan.spec.ports import Runner

_QUESTIONS = {
    "python": (("python3", "-V"), r"Python ([0-9.]+)"),
    "openssl": (("openssl", "version"), r"OpenSSL (\S+)"),
    "openssh": (("ssh", "-V"), r"OpenSSH_([0-9.p]+)"),
    "tar": (("tar", "--version"), r"tar \((.*)\) (\d\S*)"),
}


class Versions(NamedTuple):
    """``tar`` with its make: ``GNU tar 1.34``, ``busybox 1.35.0``; None where the program is missing or silent."""

    python: str | None = None
    openssl: str | None = None
    openssh: str | None = None
    tar: str | None = None


def ask(runner: Runner) -> Versions:
    """Ask the programs that are on the path."""
    found = {name: _answer(runner, *question) for name, question in _QUESTIONS.items()}
    return Versions(**found)


def _answer(runner: Runner, argv: tuple[str, ...], pattern: str) -> str | None:
    if shutil.which(argv[0]) is None:
        return None
    found = re.match(pattern, runner.run(argv, env={"LC_ALL": "C"}, timeout=10).output)
    return " ".join(found.groups()) if found else None
