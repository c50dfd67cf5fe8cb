"""What all endpoints share."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sampan.gateway import devices
from sampan.gateway.admission import Admission
from sampan.gateway.callers import Callers
from sampan.gateway.engine import Engine
from sampan.gateway.meter import Meter
from sampan.gateway.settings import Limits, ServedModel


@dataclass
class House:
    """One service. ``ready`` is what ``/ready`` says beside the engine's own state: the self-test passed.

    ``device``: what the model is to be computed on.
    """

    engine: Engine
    model: ServedModel
    limits: Limits
    admission: Admission
    callers: Callers = field(default_factory=lambda: Callers(None))
    meter: Meter = field(default_factory=Meter)
    ready: bool = True
    takes_tools: bool = True  # the model's template has a place for them, as far as is known
    draining: bool = False
    retiring: bool = False  # a successor answers: each connection is closed after its next answer
    device: str = devices.CPU

    @property
    def actual_device(self) -> str | None:
        """What the engine's process computes on; None where that is not known."""
        pid = getattr(self.engine, "pid", None)
        return devices.in_use(Path(f"/proc/{pid}")) if isinstance(pid, int) else None

    @property
    def on_its_device(self) -> bool:
        """False where the engine is known to compute on another device than wanted."""
        return self.actual_device in (None, self.device)
