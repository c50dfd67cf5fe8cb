"""sbom.cdx.json: the bundle's bill of materials, in CycloneDX 1.6. Equal parts give equal bytes."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, Property, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from sampan import __version__
from sampan.papers import licences
from sampan.spec.artefacts import EngineBuild, RuntimePackage, RuntimeTree, Wheel, Wheelhouse
from sampan.spec.plan import Plan
from sampan.spec.weights import WeightsInfo

FILE = "sbom.cdx.json"
_HUB = "hf:"


def make(plan: Plan, engine: EngineBuild, runtime: RuntimeTree, wheels: Wheelhouse, weights: WeightsInfo) -> bytes:
    """The document. Licences that no SPDX name fits are given as they were written."""
    root = Component(
        name=plan.name,
        version=str(plan.release),
        type=ComponentType.APPLICATION,
        bom_ref="bundle",
        properties=[Property(name="sampan:target", value=plan.target), Property(name="sampan:arch", value=plan.arch)],
    )
    parts = [
        _engine(plan, engine),
        *(_package(one) for one in runtime.packages),
        *(_wheel(one) for one in wheels.wheels),
        _weights(weights),
    ]
    bom = Bom(components=parts)
    bom.metadata.component = root
    bom.metadata.tools.components.add(Component(name="sampan", version=__version__, type=ComponentType.APPLICATION))
    bom.register_dependency(root, parts)
    return _plain(json.loads(JsonV1Dot6(bom).output_as_string()))


def _plain(document: dict[str, object]) -> bytes:
    """Without the moment; the serial number follows from what the document says."""
    metadata = document["metadata"]
    assert isinstance(metadata, dict)  # noqa: S101  (the schema's)
    metadata.pop("timestamp", None)
    document.pop("serialNumber", None)
    for tool in metadata["tools"]["components"]:
        tool["bom-ref"] = f"tool/{tool['name']}"
    text = json.dumps(document, ensure_ascii=False, sort_keys=True)
    document["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_OID, text).urn
    return (json.dumps(document, ensure_ascii=False, sort_keys=True, indent=1) + "\n").encode()


def _sha256(digest: str) -> list[HashType]:
    return [HashType(alg=HashAlgorithm.SHA_256, content=digest)]


def _engine(plan: Plan, engine: EngineBuild) -> Component:
    """The executables and what is linked into them; the source's hash is that of the archive it was built from."""
    ref = f"engine/{engine.engine}"
    return Component(
        name=engine.engine,
        version=engine.version,
        type=ComponentType.APPLICATION,
        bom_ref=ref,
        purl=PackageURL("generic", None, engine.engine, engine.version),
        licenses=licences.said(licences.engine()),
        properties=[Property(name="sampan:compiler", value=engine.compiler)],
        external_references=[
            ExternalReference(
                type=ExternalReferenceType.SOURCE_DISTRIBUTION,
                url=XsUri(licences.source_of(engine.source_sha256)),
                hashes=_sha256(engine.source_sha256),
            )
        ],
        components=[*_executables(plan, engine, ref), *_linked(engine.licences, ref)],
    )


def _executables(plan: Plan, engine: EngineBuild, ref: str) -> Iterator[Component]:
    planned = {variant.name for variant in plan.variants}
    for built in engine.variants:
        if built.name in planned:
            place = f"{ref}/{built.name}/{PurePath(built.path).name}"
            yield Component(name=place, type=ComponentType.FILE, bom_ref=place, hashes=_sha256(built.sha256))


def _linked(texts: Iterable[str], ref: str) -> Iterator[Component]:
    for text in sorted(texts):
        file = Path(text).name
        name = file.removeprefix("LICENSE-")
        if file in licences.linked():
            licence = licences.said(licences.linked()[file])
            yield Component(name=name, type=ComponentType.LIBRARY, bom_ref=f"{ref}/{name}", licenses=licence)


def _package(one: RuntimePackage) -> Component:
    url = PackageURL("deb", "debian", one.name, one.version, {"arch": one.arch, "distro": licences.suite()})
    return Component(
        name=one.name,
        version=one.version,
        bom_ref=f"runtime/{one.name}",
        purl=url,
        hashes=_sha256(one.sha256),
        licenses=licences.said(licences.runtime().get(one.name)),
    )


def _wheel(one: Wheel) -> Component:
    name = one.name.lower().replace("_", "-")
    url = PackageURL("pypi", None, name, one.version, {"file_name": one.file_name})
    if name == "sampan":  # built here: no index's project of that name is meant
        url = PackageURL("generic", None, name, one.version)
    return Component(
        name=one.name,
        version=one.version,
        bom_ref=f"app/{one.name}",
        purl=url,
        hashes=_sha256(one.sha256),
        licenses=licences.said(one.licence),
    )


def _weights(info: WeightsInfo) -> Component:
    """A local folder's path is nobody's business: only what a hub or an index calls it is told."""
    place = f"weights/{info.file_name}"
    owner, slash, name = info.source.removeprefix(_HUB).partition("@")[0].partition("/")
    url = PackageURL("huggingface", owner, name) if info.source.startswith(_HUB) and slash else None
    if info.source.startswith("pypi:"):
        url = PackageURL("pypi", None, info.source.removeprefix("pypi:"))
    return Component(
        name=info.name,
        type=ComponentType.MACHINE_LEARNING_MODEL,
        version=info.quantization,
        bom_ref=place,
        purl=url,
        hashes=_sha256(info.sha256),
        licenses=licences.said(info.licence),
    )
