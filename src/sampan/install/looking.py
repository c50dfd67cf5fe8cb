"""The look at the target before a change, and what stands against a release that is to return."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sampan.install import key_file, preflight, source, tls_files
from sampan.install.facts import HostFacts, gather
from sampan.install.job import Hands
from sampan.install.machine import Machine
from sampan.install.model import Installed, InstallOptions
from sampan.install.source import Source


def look(machine: Machine, given: Source, record: Installed, prefix: Path, *, state: str | None = None) -> HostFacts:
    """What bears on ``record`` being in force. ``state`` of the release's files where it is known already."""
    keys = key_file.path_of(machine, given.plan.name, record.keys)
    return replace(
        gather(machine, given, prefix, record.port, state=state),
        host=record.host,
        key_file=str(keys),
        keys=key_file.state(keys),
        tls=tls_files.unfit(machine, record),
    )


def check_return(
    machine: Machine, folder: Path, record: Installed, hands: Hands, features: frozenset[str] | None
) -> None:
    """Whether a whole release may be in force again, with the configuration that it had. None: any CPU will do.

    Raises IncompatibleError, MissingToolError or FilesystemError with every problem listed, as an installation does.
    """
    given, prefix = source.from_folder(folder), Path(record.prefix)
    able = frozenset(name for variant in given.plan.variants for name in variant.requires)
    options = InstallOptions(
        bundle=folder,
        features=able if features is None else features,
        prefix=prefix,
        service=record.service,
        scope=record.scope,
        allow_downgrade=True,
    )
    facts = look(machine, given, record, prefix, state="same")
    preflight.check(given.plan, options, prefix, record.port, facts)
    for notice in preflight.notices(given.plan, options, facts):
        hands.echo(f"  ! {notice.text()}")
