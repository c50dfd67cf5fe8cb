"""What all endpoints share."""

from __future__ import annotations

from dataclasses import dataclass, field

from sampan.gateway.admission import Admission
from sampan.gateway.callers import Callers
from sampan.gateway.engine import Engine
from sampan.gateway.meter import Meter
from sampan.gateway.settings import Limits, ServedModel


@dataclass
class House:
    """One service. ``ready`` is what ``/ready`` says beside the engine's own state: the self-test passed."""

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
