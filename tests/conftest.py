"""For every test: a shell that runs the suite in the background ignores Ctrl-C, and children would inherit that."""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
