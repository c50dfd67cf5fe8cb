"""What a file carries for the graphics card: pure values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class GpuImage:
    """One program of a fat binary.

    ``kind``: sass (machine code), ptx (text that the driver compiles) or other. ``arch``: 61 for sm_61 or compute_61.
    ``compression``: none, lz4 or zstd. ``isa``: PTX ISA version such as ``8.8``. ``toolkit``: 129 for CUDA 12.9, 0
    where the image does not say. ``variant``: a for sm_90a (that capability only), f for sm_100f (its family), else
    "".
    """

    kind: str
    arch: int
    compression: str = "none"
    isa: str = ""
    toolkit: int = 0
    variant: str = ""

    @property
    def name(self) -> str:
        """``sm_61``, ``sm_90a`` or ``compute_61``."""
        return f"{'compute' if self.kind == 'ptx' else 'sm'}_{self.arch}{self.variant}"


@dataclass(frozen=True)
class Container:
    """Alternatives, of which the driver takes one; ``count`` containers of the file offer just these."""

    images: tuple[GpuImage, ...]
    count: int


@dataclass(frozen=True)
class GpuCode:
    """All containers of one file. ``damage``: why the rest could not be read, in English; empty where all was."""

    containers: tuple[Container, ...] = ()
    damage: str = ""

    @property
    def images(self) -> tuple[GpuImage, ...]:
        """Every distinct image, sorted."""
        return tuple(sorted({image for each in self.containers for image in each.images}))
