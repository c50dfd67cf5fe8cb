"""GPU code against the target's cards and their driver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sampan.audit.closure import Closure
from sampan.audit.facts import ElfFacts
from sampan.audit.gpu import rules
from sampan.audit.gpu.choice import taken
from sampan.audit.gpu.facts import GpuCode, GpuImage
from sampan.audit.world import World
from sampan.spec.artefacts import Finding
from sampan.spec.target import GpuFacts


@dataclass(frozen=True)
class _Card:
    """One card as the rules need it: ``capability`` 61 for 6.1; ``driver`` "" where unknown."""

    name: str
    capability: int
    driver: str


def judge(path: str, world: World, closure: Closure) -> Iterator[Finding]:  # noqa: ARG001
    """``gpu.*``; nothing for files that carry no GPU code and need no CUDA library."""
    facts, name = world.files[path], world.name(path)
    toolkit = _toolkit(facts)
    if facts.gpu:
        yield Finding("gpu.code", "info", name, _listing(facts.gpu, toolkit))
        if facts.gpu.damage:
            yield Finding("gpu.unreadable", "warning", name, (("reason", facts.gpu.damage),))
    if facts.gpu or toolkit:
        for card in _cards(world.profile.gpus):
            yield from _driver(name, card, toolkit)
            yield from _kernels(name, card, facts.gpu or GpuCode(), toolkit)


def _cards(gpus: tuple[GpuFacts, ...]) -> Iterator[_Card]:
    """Each kind of card once. One whose capability nobody knows is judged by its driver only."""
    seen = set()
    for gpu in gpus:
        known = gpu.compute_capability
        value = rules.capability(known) if known else rules.capability_of(gpu.name, rules.load())
        card = _Card(gpu.name, value or 0, gpu.driver or "")
        if card not in seen:
            seen.add(card)
            yield card


def _toolkit(facts: ElfFacts) -> int:
    """The major version of the CUDA toolkit that the file was made with or needs; 0 where nothing tells."""
    known = rules.load()
    found = [0]
    for soname in (*facts.needed, facts.soname or ""):
        stem, dot, version = soname.partition(".so.")
        if dot and stem in known.sonames and version.split(".")[0].isdecimal():
            found.append(int(version.split(".")[0][:4]))
    for image in facts.gpu.images if facts.gpu else ():
        found += [image.toolkit // 10]
        found += [known.ptx[image.isa].toolkit] if image.isa in known.ptx else []
    return max(each for each in found if each in known.toolkit or each == 0)


def _listing(code: GpuCode, toolkit: int) -> tuple[tuple[str, str], ...]:
    images = code.images
    return (
        ("sass", _names(image for image in images if image.kind == "sass")),
        ("ptx", _names(image for image in images if image.kind == "ptx")),
        ("isa", ", ".join(dict.fromkeys(image.isa for image in images if image.isa)) or "-"),
        ("compression", ", ".join(sorted({image.compression for image in images})) or "-"),
        ("containers", str(sum(each.count for each in code.containers))),
        ("cuda", str(toolkit) if toolkit else "?"),
    )


def _names(images: Iterator[GpuImage]) -> str:
    return ", ".join(dict.fromkeys(image.name for image in images)) or "-"


def _driver(name: str, card: _Card, toolkit: int) -> Iterator[Finding]:
    if toolkit and card.driver and rules.older(card.driver, rules.load().toolkit[toolkit].driver):
        wanted = rules.load().toolkit[toolkit].driver
        values = (("cuda", str(toolkit)), ("wanted", wanted), ("driver", card.driver), ("gpu", card.name))
        yield Finding("gpu.driver-old", "error", name, values)


def _kernels(name: str, card: _Card, code: GpuCode, toolkit: int) -> Iterator[Finding]:
    if not card.capability:
        return
    if toolkit and card.capability < rules.load().toolkit[toolkit].capability:
        values = (*_card_values(card), ("cuda", str(toolkit)), ("least", _dotted(rules.load().toolkit[toolkit])))
        yield Finding("gpu.arch-dropped", "error", name, values)
        return
    total = sum(each.count for each in code.containers)
    chosen = [(taken(each.images, card.capability), each.count) for each in code.containers]
    none = sum(count for image, count in chosen if image is None)
    if none:
        listing = _listing(code, toolkit)[:2]
        values = (*_card_values(card), *listing, ("missing", str(none)), ("containers", str(total)))
        yield Finding("gpu.no-kernel-image", "error" if none == total else "warning", name, values)
    images = [image for image, _ in chosen if image is not None]
    yield from _compiled(name, card, [image for image in images if image.kind == "ptx"])
    yield from _unpacked(name, card, [image for image in images if image.compression == "zstd"])


def _compiled(name: str, card: _Card, images: list[GpuImage]) -> Iterator[Finding]:
    """Text only: the driver has to compile it, at every first start, and must know its ISA version."""
    if not images:
        return
    hardest = max(images, key=lambda image: [int(part) for part in (image.isa or "0").split(".")])
    least, certain = rules.least_driver(hardest.isa, rules.load()) if hardest.isa else ("", False)
    refused = bool(card.driver and least and rules.older(card.driver, least))
    wanted = least if certain else f">={least} (?)" if least else "?"
    values = (
        *_card_values(card),
        ("ptx", _names(iter(images))),
        ("isa", hardest.isa or "?"),
        ("wanted", wanted),
        ("driver", card.driver or "?"),
    )
    yield Finding("gpu.jit", "error" if refused else "warning", name, values)


def _unpacked(name: str, card: _Card, images: list[GpuImage]) -> Iterator[Finding]:
    wanted = rules.load().zstd_driver
    if images and not (card.driver and not rules.older(card.driver, wanted)):
        values = (*_card_values(card), ("wanted", wanted), ("driver", card.driver or "?"))
        yield Finding("gpu.image-invalid", "error" if card.driver else "warning", name, values)


def _card_values(card: _Card) -> tuple[tuple[str, str], ...]:
    return ("gpu", card.name), ("capability", f"{card.capability // 10}.{card.capability % 10}")


def _dotted(toolkit: rules.Toolkit) -> str:
    return f"{toolkit.capability // 10}.{toolkit.capability % 10}"
