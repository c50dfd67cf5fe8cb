"""Tells systemd how the service is, by the datagram of sd_notify(3); no library."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

READY, STOPPING = "READY=1", "STOPPING=1"


def notify(message: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Send ``message`` where NOTIFY_SOCKET names a socket; False where it does not, or nobody listens."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return False
    if address.startswith("@"):
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        try:
            sender.sendto(message.encode(), address)
        except OSError:
            return False
    return True
