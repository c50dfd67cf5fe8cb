"""What a running service does about a successor when it is asked to (SIGUSR2) or to give it up (SIGUSR1).

Whoever asked is told by systemd's StatusText, ``hand-over 3: failed: …``: a new number with each word.
"""

from __future__ import annotations

import asyncio
import shlex
import socket
from collections.abc import Callable
from contextlib import suppress

from sampan import i18n
from sampan.gateway import handover, notify
from sampan.gateway.settings import ServeSettings


class Succession:
    """Of one process: one successor at a time. ``yield_to`` is called with the number of the one that answers."""

    def __init__(
        self,
        settings: ServeSettings,
        listener: socket.socket,
        say: Callable[[str], None],
        yield_to: Callable[[int], None],
    ) -> None:
        self._settings = settings
        self._listener = listener
        self._say = say
        self._yield_to = yield_to
        self._attempt: asyncio.Task[None] | None = None
        self._calling_off: asyncio.Task[None] | None = None
        self._words = 0

    def begin(self) -> None:
        """Start the successor, unless one is being started."""
        if not self._settings.successor:
            self._failed(i18n.text("gateway.handover-none"))
        elif self._attempt is None or self._attempt.done():
            self._attempt = asyncio.ensure_future(self._hand_over())

    def call_off(self) -> None:
        """End the successor, if there is one that does not answer yet, and say so."""
        self._calling_off = asyncio.ensure_future(self._call_off())

    async def end(self) -> None:
        """No successor is left that does not answer. Raises nothing."""
        if self._attempt is not None and not self._attempt.done():
            self._attempt.cancel()
            with suppress(asyncio.CancelledError):
                await self._attempt

    async def _call_off(self) -> None:
        began = self._attempt is not None and not self._attempt.done()
        await self.end()
        if began:
            self._say(i18n.text("gateway.handover-called-off"))
        self._tell("called off")

    async def _hand_over(self) -> None:
        """Let the successor take over; where it cannot, nothing is changed."""
        command = self._settings.successor
        self._say(i18n.text("gateway.handover-starts", command=shlex.join(command)))
        self._tell("started")
        try:
            pid = await handover.hand_over(command, self._listener, self._settings.start_seconds)
        except handover.NotTakenOverError as error:
            self._failed(str(error))
            return
        self._say(i18n.text("gateway.handover-done", pid=pid))
        self._tell("done")
        self._yield_to(pid)

    def _failed(self, detail: str) -> None:
        self._say(i18n.text("gateway.handover-failed", detail=detail))
        self._tell(f"failed: {detail}")

    def _tell(self, word: str) -> None:
        self._words += 1
        notify.notify(f"STATUS=hand-over {self._words}: {' '.join(word.split())}")
