"""The socket that clients reach."""

from __future__ import annotations

import errno
import socket

from sampan.errors import ServiceError

_BACKLOG = 2048


def listen(host: str, port: int) -> socket.socket:
    """A listening TCP socket; port 0 takes a free one. Raises ServiceError.

    Listening starts here, not later: the port is surely ours before an engine is started.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except socket.gaierror as error:
        raise ServiceError("gateway.host-unknown", host=host, detail=error.strerror) from error
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise _service_error(error, host, port) from error
    return listener


def _service_error(error: OSError, host: str, port: int) -> ServiceError:
    if error.errno == errno.EADDRINUSE:
        return ServiceError("gateway.port-taken", host=host, port=port)
    if error.errno in (errno.EACCES, errno.EPERM):
        return ServiceError("gateway.port-forbidden", port=port)
    return ServiceError("gateway.host-unknown", host=host, detail=error.strerror)


def url_of(listener: socket.socket, scheme: str = "http") -> str:
    """``http://127.0.0.1:8080`` of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
