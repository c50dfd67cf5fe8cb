"""The connected side: two signed releases, made and packed by the real command."""

from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.boot.transcript import Transcript
from tests.e2e.ships import KUNPENG, MINILM

NAME = "minilm"
LONGEST = {1: 256, 2: 240}  # tokens, by release; the longest golden text has 229


@dataclass
class Workshop:
    """Everything lies in ``folder``."""

    folder: Path
    log: Transcript

    def sampan(self, *words: str) -> str:
        """Type a sampan command; what it printed."""
        self.log.say(f"workshop$ {shlex.join(('sampan', *words))}")
        command = [sys.executable, "-m", "sampan", *words]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        self.log.answer(done.stdout + done.stderr)
        assert done.returncode == 0, f"{words[0]}: {done.returncode}"
        return done.stdout

    def tar(self, release: int) -> Path:
        """Of that release."""
        return self.folder / f"{NAME}-{release}.tar"

    @property
    def key(self) -> Path:
        """The public key."""
        return self.folder / "site.pub"

    def make(self) -> None:
        """Two releases that differ in the longest text that they answer.

        Q8_0, since the emulator computes in integers many times faster than in half floats.
        """
        self.folder.mkdir()
        self.sampan("key", "new", "site")
        for release, longest in LONGEST.items():
            words = ("-w", MINILM, "-t", KUNPENG, "--name", NAME, "--release", str(release), "--quant", "q8_0")
            more = ("--max-tokens", str(longest), "--no-rehearse", "--sign", "site", "--out", ".")
            self.sampan("ship", *words, *more)
