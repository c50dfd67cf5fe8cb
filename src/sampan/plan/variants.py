"""The engine's variants: one build per CPU level, and which of them a CPU can run."""

from __future__ import annotations

from collections.abc import Iterable, Set
from functools import cache

from sampan import i18n
from sampan.errors import IncompatibleError
from sampan.plan.data import table
from sampan.spec.plan import Variant


@cache
def all_variants() -> tuple[Variant, ...]:
    """Every variant of ``data/variants.toml``, by architecture, baseline first."""
    variants = (
        Variant(
            name=row["name"],
            arch=row["arch"],
            rank=row["rank"],
            requires=tuple(sorted(row["requires"])),
            zig_cpu=row["zig_cpu"],
            cmake=tuple(row.get("cmake", ())),
            repacks=tuple(row.get("repacks", ())),
        )
        for row in table("variants.toml")["variant"]
    )
    return tuple(sorted(variants, key=lambda variant: (variant.arch, variant.rank)))


def runnable(arch: str, features: Iterable[str], *, features_known: bool = True) -> tuple[Variant, ...]:
    """The variants that a bundle should carry, baseline first.

    Where the features are only a floor (``features_known`` False), all of the architecture: the launcher on the
    target decides there. Raises IncompatibleError ``variant.arch`` or ``variant.none``.
    """
    of_arch = tuple(variant for variant in all_variants() if variant.arch == arch)
    if not of_arch:
        known = ", ".join(sorted({variant.arch for variant in all_variants()}))
        raise IncompatibleError("variant.arch", arch=arch, known=known)
    if not features_known:
        return of_arch
    real = frozenset(features)
    found = tuple(variant for variant in of_arch if not missing(variant, real))
    if not found:
        raise _none(of_arch, real)
    return found


def choose(variants: Iterable[Variant], features: Iterable[str]) -> Variant:
    """The highest-ranked variant that a CPU with exactly these features can run.

    Raises IncompatibleError ``variant.none`` that names, per variant, the features missing.
    """
    given, real = tuple(variants), frozenset(features)
    found = [variant for variant in given if not missing(variant, real)]
    if not found:
        raise _none(given, real)
    return max(found, key=lambda variant: variant.rank)


def missing(variant: Variant, features: Set[str]) -> tuple[str, ...]:
    """What the variant needs and the CPU lacks, sorted."""
    return tuple(sorted(frozenset(variant.requires) - features))


def _none(variants: Iterable[Variant], features: Set[str]) -> IncompatibleError:
    lines = [
        i18n.text("variant.missing", variant=variant.name, features=" ".join(missing(variant, features)))
        for variant in variants
    ]
    return IncompatibleError("variant.none", missing="; ".join(lines) or "-")
