"""Certificate and key of a service, as install meets them: whether its user will be able to serve with them."""

from __future__ import annotations

import ssl
import stat
from collections.abc import Iterator
from pathlib import Path

from sampan import i18n
from sampan.install import account, place
from sampan.install.machine import Machine
from sampan.install.model import SYSTEM, Installed

_HIDDEN = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")  # noqa: S108  (from the unit: ProtectHome, PrivateTmp)
_OPEN = stat.S_IRWXG | stat.S_IRWXO
_UNFIT = set(" \t\n\"'\\$;")  # of a path in a unit file


def unfit(machine: Machine, record: Installed) -> tuple[str, str] | None:
    """The file and what is wrong with it, None where both will do (or none is given). Raises nothing."""
    if record.certificate is None and record.certificate_key is None:
        return None
    if record.certificate is None or record.certificate_key is None:
        return str(record.certificate or record.certificate_key), i18n.text("install.tls.half")
    certificate, key = Path(record.certificate), Path(record.certificate_key)
    for path, found in ((certificate, _of_both(record, certificate)), (key, _of_both(record, key))):
        if found:
            return str(path), found
    return _of_contents(certificate, key) or _of_owners(machine, record, certificate, key)


def _of_both(record: Installed, path: Path) -> str | None:
    """What would keep anybody, or the service, from reaching the file."""
    if not path.is_file():
        return i18n.text("install.tls.no-file")
    if _UNFIT & set(str(path)):
        return i18n.text("install.tls.characters")
    if record.scope != SYSTEM or not record.service:
        return None
    if any(Path(top) in path.parents for top in _HIDDEN):
        return i18n.text("install.tls.hidden")
    closed = place.closed(path.parent)
    return None if closed is None else i18n.text("install.tls.closed", folder=closed)


def _of_contents(certificate: Path, key: Path) -> tuple[str, str] | None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except (OSError, ssl.SSLError) as error:
        return str(certificate), error.strerror or str(error)
    return None


def _of_owners(machine: Machine, record: Installed, certificate: Path, key: Path) -> tuple[str, str] | None:
    """The key is for the service's user alone; root's becomes its own (``key_file.hand_over``)."""
    found = key.lstat()
    if not stat.S_ISREG(found.st_mode):
        return str(key), i18n.text("install.tls.link")
    if found.st_mode & _OPEN:
        return str(key), i18n.text("install.tls.open")
    if record.scope == SYSTEM and record.user is not None:
        if found.st_uid not in tuple(_owners(machine, record.user)):
            return str(key), i18n.text("install.tls.owner", user=record.user)
        if not certificate.stat().st_mode & stat.S_IROTH:
            return str(certificate), i18n.text("install.tls.certificate")
    return None


def _owners(machine: Machine, user: str) -> Iterator[int]:
    yield 0
    if (ids := account.ids(machine, user)) is not None:
        yield ids[0]
