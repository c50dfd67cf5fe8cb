"""A whole answer in one write: uvicorn sends head and body one after the other.

Each write is a system call at once (uvloop), a packet, and a reason for the client to wake up.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class OneWrite:
    """What uvicorn uses of a transport. What is written while declared bytes of the answer are missing is kept back
    until they are there, so nothing is ever kept that will not go; streams, which declare no length, go as they come.
    """

    __slots__ = (
        "_kept",
        "_protocol",
        "_write",
        "abort",
        "close",
        "get_extra_info",
        "is_closing",
        "pause_reading",
        "resume_reading",
        "set_protocol",
    )

    def __init__(self, transport: asyncio.Transport, protocol: HttpToolsProtocol) -> None:
        self._kept = b""
        self._protocol = protocol
        self._write = transport.write
        self.abort = transport.abort
        self.close = transport.close
        self.get_extra_info = transport.get_extra_info
        self.is_closing = transport.is_closing
        self.pause_reading = transport.pause_reading
        self.resume_reading = transport.resume_reading
        self.set_protocol = transport.set_protocol

    def write(self, data: bytes) -> None:
        """See asyncio.Transport."""
        if self._kept:
            data, self._kept = self._kept + data, b""
        cycle = self._protocol.cycle
        if cycle is not None and cycle.expected_content_length and cycle.scope["method"] != "HEAD":
            self._kept = data
        elif data:
            self._write(data)
