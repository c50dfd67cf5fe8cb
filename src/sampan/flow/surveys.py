"""Every way to a profile: a name, this machine, a pasted text, a shell on another machine."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from sampan.errors import BadInputError, UsageError
from sampan.flow.tools import Tools
from sampan.spec.target import TargetProfile

PASTED = "pasted"


@dataclass(frozen=True)
class Way:
    """How to reach an ``ssh://`` target: jump host, private keys, a trusted fingerprint, seconds for an answer."""

    jump: str | None = None
    identities: tuple[Path, ...] = ()
    accept: str | None = None
    seconds: float = 15.0


def profile(target: str, way: Way, probing: Tools | None = None) -> TargetProfile:
    """A known name, ``this``, a profile file, or ``ssh://user@host:port``; with the probe where tools are given.

    Raises UsageError, BadInputError, IncompatibleError, BuildError; for ssh see ``edge.ssh.run_script``.
    """
    from sampan.flow import probing as probes
    from sampan.survey.resolve import resolve

    if target.startswith("ssh://"):
        return remote(target, way, probes.survey_script(probing) if probing else None)
    if target == "this":
        return probes.probed(here(), probing) if probing else here()
    if probing:
        raise UsageError("survey.probe-where", target=target)
    return resolve(target)


def remote(target: str, way: Way, probing_script: str | None = None) -> TargetProfile:
    """The survey script, run through ssh; the profile has the host's name. Nothing is left on that machine."""
    from sampan.edge import ssh
    from sampan.survey import pasted as reader
    from sampan.survey.resolve import name_of_host

    address = ssh.parse(target)
    settings = ssh.SshSettings(
        jump=ssh.parse(way.jump) if way.jump else None,
        identities=way.identities,
        accept=way.accept,
        connect_seconds=way.seconds,
    )
    output = ssh.run_script(address, probing_script or script(None), settings)
    return reader.profile(output, name=name_of_host(address.host), where=str(address))


def script(probing: Tools | None) -> str:
    """The survey script, with the probe where tools are given. Raises BuildError, MissingToolError."""
    from sampan.flow.probing import survey_script
    from sampan.survey.script import text

    return survey_script(probing) if probing else text()


def here() -> TargetProfile:
    """This machine with all that depends on the session and the moment. Raises IncompatibleError."""
    from sampan.edge.process import ProcessRunner
    from sampan.survey.whole import survey_whole

    return survey_whole(runner=ProcessRunner(), environ=os.environ, now=datetime.now(timezone.utc))


def pasted(source: str) -> TargetProfile:
    """The block in a file, or in standard input for ``-``. Raises BadInputError, IncompatibleError."""
    from sampan.survey import pasted as reader

    if source == "-":
        return reader.profile(sys.stdin.buffer.read().decode("utf-8", "replace"), name=PASTED, where="-")
    try:
        text = decoded(Path(source).read_bytes())
    except FileNotFoundError as error:
        raise BadInputError("file.missing", path=source) from error
    except OSError as error:
        raise BadInputError("file.unreadable", path=source, detail=str(error)) from error
    return reader.profile(text, name=Path(source).stem, where=source)


def decoded(data: bytes) -> str:
    """The text of a file that some editor saved: UTF-8, UTF-16 by its mark, else leniently (the block is ASCII)."""
    if data[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        return data.decode("utf-16", "replace")
    return data.decode("utf-8", "replace")
