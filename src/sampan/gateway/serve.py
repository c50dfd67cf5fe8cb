"""The service as a whole: the operator's files, the port, the private folder, and then its life."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable

import uvloop

from sampan import i18n
from sampan.gateway import assembly, handover, listening
from sampan.gateway.life import Life
from sampan.gateway.logs import log_to_stderr
from sampan.gateway.run_folder import choose_base, run_folder
from sampan.gateway.settings import ServeSettings
from sampan.spec.address import is_loopback


def serve(settings: ServeSettings, *, say: Callable[[str], None] | None = None) -> None:
    """Serve until SIGTERM or SIGINT, then finish what runs (at most ``drain_seconds``) and return.

    ``say`` receives what a person should read (default: stderr). Raises ServiceError where the port is taken
    (then no engine is started) or the engine does not become ready; UsageError where the address is open and no key
    is set; BadInputError or FilesystemError for files of the operator. Started by a predecessor (handover.py), it
    takes over when it answers rightly, and raises ServiceError where it does not.
    """
    speak = say or _to_stderr
    log_to_stderr(json=settings.json_logs)
    inherited = handover.inherited(os.environ)
    assembly.read_keys(settings)
    if not is_loopback(settings.host) and settings.files.certificate is None:
        speak(i18n.text("warning.gateway.open-host", host=settings.host))
    with (
        inherited.listener if inherited else listening.listen(settings.host, settings.port) as listener,
        run_folder(settings.run_folder or choose_base(os.environ)) as folder,
    ):
        gc.freeze()  # what was imported stays: no collection need walk through it again, nor touch its memory
        uvloop.run(Life(settings, listener, folder, speak, inherited).run())


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
