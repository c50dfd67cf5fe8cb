"""From the fields of a survey block to a profile. The same parsers as of the direct survey judge them."""

from __future__ import annotations

import re

from sampan.errors import BadInputError
from sampan.spec.target import LibcFacts, LimitsFacts, OsFacts, SecurityFacts, Source, TargetProfile
from sampan.survey import block, pasted_parts, probe
from sampan.survey.features import PAGE_SIZES
from sampan.survey.fields import Fields, decoded
from sampan.survey.pasted_cpu import architecture, cpu_facts

# Keys of the block that this reader understands; others (of a newer script) are kept in the profile as they are.
_KNOWN = frozenset(
    re.findall(
        r"\w+",
        "ab m k oi on ov pg cm cv cf cn cs ci cp ca cr xf xu hw hx fl pr so co nu al cg cq ml mt ma sw lm ln lp "
        "gc gx ga go li py ss sh ta sy in se aa ky fa u px lc t g n d v p z",
    )
)


def profile(text: str, *, name: str, where: str) -> TargetProfile:
    """The profile in a pasted text. Raises BadInputError (see ``block.read``; ``survey.block-field``), and
    IncompatibleError ``survey.userland`` where the programs there are of no kind that is known here."""
    fields = Fields(block.read(text, where))
    try:
        return _profile(fields, name, where)
    except (ValueError, IndexError) as error:
        raise BadInputError("survey.block-field", path=where, detail=str(error)) from error


def _profile(fields: Fields, name: str, where: str) -> TargetProfile:
    arch = architecture(fields.raw("ab") or "", where)
    proxies = fields.raw("px")
    libraries, absent = pasted_parts.libraries(fields.raw("li"))
    page = fields.number("pg")
    if page not in PAGE_SIZES:
        raise BadInputError("survey.block-field", path=where, detail=f"pg={page}")
    return TargetProfile(
        name=name,
        arch=arch,
        os=OsFacts(
            id=fields.text("oi") or "linux",
            name=fields.text("on") or "Linux",
            version=fields.text("ov") or "",
            kernel=fields.text("k"),
        ),
        cpu=cpu_facts(fields, arch),
        page_size=page,
        libc=LibcFacts(fields.text("gc"), fields.text("gx"), fields.text("ga"), fields.text("go")),
        libraries=libraries,
        absent_libraries=absent,
        memory_bytes=fields.number("mt", 1024),
        memory_limit_bytes=fields.number("ml"),
        cpu_quota=pasted_parts.quota(fields.raw("cq")),
        systemd=fields.number("sy"),
        cgroup=fields.number("cg"),
        python=fields.text("py"),
        openssh=fields.text("sh"),
        openssl=fields.text("ss"),
        gpus=tuple(pasted_parts.gpu(value) for value in fields.all("g")),
        npus=pasted_parts.npus(fields.raw("n")),
        devices=pasted_parts.devices(fields.all("v")),
        kernel_arch=fields.text("m"),
        swap_bytes=fields.number("sw", 1024),
        limits=LimitsFacts(*(fields.number(key, least=-1) for key in ("lm", "ln", "lp"))),
        disks=pasted_parts.disks(fields.all("d")),
        security=SecurityFacts(fields.text("se"), fields.text("aa"), fields.text("ky"), fields.text("fa")),
        tar=fields.text("ta"),
        init=fields.text("in"),
        user=pasted_parts.user(fields.raw("u")),
        proxies=None if proxies is None else tuple(decoded(proxies).split()),
        locale=fields.text("lc"),
        moment=pasted_parts.moment(fields),
        sources=(Source(fact="*", check="S", where="the survey script, run on the machine"),),
        extra=_unknown(fields),
    )


def _unknown(fields: Fields) -> dict[str, object]:
    """What a newer script says; that fields were dropped to keep the block small, or the probe not done."""
    kept = {key: fields.all(key) for key, _ in fields.pairs if key not in _KNOWN}
    dropped, told = fields.number("z"), fields.raw("pr")
    said: dict[str, object] = {"survey": kept} if kept else {}
    if dropped:
        said["survey_dropped"] = dropped
    if told == probe.NOT_DONE:
        said["survey_probe"] = "not done"
    elif told and not told.startswith(f"{probe.FORM},"):
        said["survey_probe"] = told
    return said
