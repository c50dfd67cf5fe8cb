"""What is known when a file has arrived."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Arrival:
    """Proof that a file arrived. ``sha256`` was computed of what lies there: on the target, or read back (``proof``).

    ``resumed_bytes`` were there from an earlier run; ``sent_bytes`` went over the line, what went twice counted
    twice; ``breaks`` of the connection; ``seconds`` of wall time.
    """

    SCHEMA: ClassVar[str] = "sampan/arrival/1"

    file: str
    host: str
    path: str
    size_bytes: int
    sha256: str
    way: str
    proof: str
    resumed_bytes: int
    sent_bytes: int
    breaks: int
    seconds: float
    arrived: str = ""
