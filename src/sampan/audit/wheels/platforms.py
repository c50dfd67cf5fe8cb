"""Whether pip on the target would look at the wheel at all: by the platforms in its name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sampan.audit.wheels import policies
from sampan.audit.wheels.read import Wheel
from sampan.audit.world import World
from sampan.spec.artefacts import Finding


def judge(wheel: Wheel, shown: str, files: Sequence[str], world: World, *, given: bool) -> Iterator[Finding]:
    """``wheel.platform``: a warning where the wheel only lies in a folder, beside the right one perhaps.

    ``files``: the ELF files in it. Those of another processor are told one by one (``arch.machine``), so that nothing
    is to be added.
    """
    archs = {policies.parse(platform).arch for platform in wheel.platforms}
    if not archs or "any" in wheel.platforms or world.profile.arch in archs:
        return
    if archs == {""} or not files:
        values = (("platforms", ", ".join(wheel.platforms)), ("wanted", world.profile.arch))
        yield Finding("wheel.platform", "error" if given else "warning", shown, values)
