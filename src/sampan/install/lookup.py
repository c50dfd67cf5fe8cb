"""Which installed service a command means."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sampan.errors import UsageError
from sampan.install import journal
from sampan.install.facts import read_record
from sampan.install.machine import Machine
from sampan.install.model import DEFAULT_HOME, RECORD, RELEASES, SYSTEM, Installed, user_home, user_name
from sampan.install.source import plan_of
from sampan.spec.ports import Runner


@dataclass(frozen=True)
class Found:
    """The service that a command means. ``record`` None: nothing is installed, only a bundle was unpacked."""

    name: str
    port: int
    host: str
    record: Installed | None

    @property
    def certificate(self) -> str | None:
        """What an installed service shows of itself over TLS; None where it speaks plain HTTP."""
        return self.record.certificate if self.record is not None and self.record.service else None

    @property
    def has_unit(self) -> bool:
        """Whether systemd runs it."""
        return self.record is not None and self.record.service

    def machine(self, runner: Runner, root: Path = Path("/")) -> Machine:
        """The machine, with the way in which this service is kept alive on it."""
        prefix = Path(self.record.prefix) if self.record else None
        return Machine(runner, root, self.record.scope if self.record else SYSTEM, prefix)


def find(bundle: Path | None, *, name: str | None = None, prefix: Path | None = None) -> Found:
    """The service of ``prefix``, else of ``/opt/sampan/<name>`` or the user's own of that name, else of the
    installation that ``bundle`` lies in, else of where ``bundle`` would be installed. Raises UsageError where there
    is none of the first two.
    """
    places = _places(bundle, name, prefix)
    for place in places:
        record = read_record(place) or _begun(place)
        if record is not None:
            return _of(record)
    if bundle is None or prefix or name:
        raise UsageError("install.not-installed", prefix=str(places[0]))
    plan = plan_of(bundle.resolve())
    return Found(plan.name, plan.port, "127.0.0.1", None)


def home_of(bundle: Path | None, *, name: str | None = None, prefix: Path | None = None) -> Path:
    """The prefix that a change means: one with a record or with something under way. Raises UsageError."""
    places = _places(bundle, name, prefix)
    found = next(
        (place for place in places if any((place / file).is_file() for file in (RECORD, journal.NAME))), None
    )
    if found is None:
        raise UsageError("install.not-installed", prefix=str(places[0]))
    return found.absolute()


def _begun(prefix: Path) -> Installed | None:
    """A first installation that was killed: what of it would have to go."""
    pending = journal.read(prefix)
    if pending is None or pending.before is not None:
        return pending.before if pending else None
    user = user_name(pending.name) if pending.fresh_user else None
    return Installed(
        name=pending.name,
        release=pending.release,
        state="installing",
        prefix=str(prefix.absolute()),
        service=pending.service,
        host="127.0.0.1",
        port=0,
        user=user,
        user_created=pending.fresh_user,
        created=pending.created,
        scope=pending.scope,
        keys=pending.keys,
    )


def _places(bundle: Path | None, name: str | None, prefix: Path | None) -> tuple[Path, ...]:
    if prefix is not None:
        return (prefix,)
    if name is None and bundle is None:
        raise UsageError("install.which")
    root = bundle.resolve() if bundle else None
    own = (root.parent.parent,) if root and not name and root.parent.name == RELEASES else ()
    service = name or plan_of(root or Path()).name
    return (*own, DEFAULT_HOME / service, user_home() / service)


def _of(record: Installed) -> Found:
    return Found(record.name, record.port, record.host, record)
