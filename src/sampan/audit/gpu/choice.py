"""Which image of a fat binary the driver takes for a card.

Source: CUDA C++ Programming Guide, "Binary Compatibility" (machine code of the same major version and the same or a
lower minor one), "PTX Compatibility" (text of the same or a lower version, compiled by the driver) and "Feature Set
Compiler Targets" (sm_90a and compute_90a: that very capability and no other; sm_100f and compute_100f: the same major
version and the same or a higher minor one).
"""

from __future__ import annotations

from sampan.audit.gpu.facts import GpuImage

_NARROW = {"": 0, "f": 1, "a": 2}


def taken(images: tuple[GpuImage, ...], capability: int) -> GpuImage | None:
    """The image that the driver takes: the nearest machine code, else the nearest text; special before common."""
    fitting = [image for image in images if _fits(image, capability)]
    return max(fitting, key=lambda image: (image.kind == "sass", image.arch, _NARROW[image.variant]), default=None)


def _fits(image: GpuImage, capability: int) -> bool:
    """Whether the card can run it, compiled or not."""
    if image.kind not in ("sass", "ptx") or image.arch > capability:
        return False
    if image.variant == "a":
        return image.arch == capability
    same_family = image.arch // 10 == capability // 10
    return same_family if image.kind == "sass" or image.variant == "f" else True
