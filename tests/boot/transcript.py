"""What was typed, where, and what it answered: on the screen and in a file, without this machine's paths."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
_LONGEST = 40  # lines of one answer; its middle is left out


@dataclass
class Transcript:
    """``names`` says what to write instead of a text, such as a path."""

    path: Path
    names: Mapping[str, str] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)

    def say(self, text: str) -> None:
        """One or more lines."""
        for found, name in self.names.items():
            text = text.replace(found, name)
        print(text, flush=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(text + "\n")

    def answer(self, text: str) -> None:
        """What a command printed."""
        lines = [line.rstrip() for line in _CONTROL.sub("", text).splitlines() if line.strip()]
        if len(lines) > _LONGEST:
            half = _LONGEST // 2
            lines = [*lines[:half], f"… {len(lines) - 2 * half} lines more …", *lines[-half:]]
        for line in lines:
            self.say(f"    {line}")

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """A step of the story, with the time that it took."""
        begun = time.monotonic()
        self.say(f"\n## {title}")
        try:
            yield
        except BaseException:
            self.say(f"FAILED after {time.monotonic() - begun:.0f} s: {title}")
            raise
        self.say(f"ok, {time.monotonic() - begun:.0f} s")
