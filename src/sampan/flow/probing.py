"""The probe's programs, made here in the workshop, and put to work: on this machine, or in the survey script."""

from __future__ import annotations

from dataclasses import replace

from sampan.errors import BadInputError
from sampan.flow.tools import Tools
from sampan.spec.target import TargetProfile
from sampan.survey import probe, script

_SECONDS = 120.0  # each of the instructions may hang for one second


def survey_script(tools: Tools) -> str:
    """The survey script with the probe for every architecture. Raises BuildError, MissingToolError."""
    from sampan.build import probe as builder

    made = {arch: _program(arch, tools) for arch in probe.ARCHITECTURES}
    commands = {arch: f"zig cc {' '.join(builder.flags(arch))} probe.c -o probe-{arch}" for arch in made}
    return script.with_probe(script.Programs(made, commands, builder.compiler()))


def _program(arch: str, tools: Tools) -> bytes:
    from sampan.build import probe as builder

    return builder.build(arch, probe.sources(), runner=tools.runner, store=tools.store).read_bytes()


def probed(profile: TargetProfile, tools: Tools) -> TargetProfile:
    """The profile of this machine with what its CPU really executes.

    Raises IncompatibleError where there is no table for its architecture, BadInputError ``survey.probe-failed``.
    """
    from sampan.build import probe as builder

    program = builder.build(profile.arch, probe.sources(), runner=tools.runner, store=tools.store)
    done = tools.runner.run([str(program)], timeout=_SECONDS)
    try:
        outcome = probe.printed(done.output)
    except ValueError as error:
        raise BadInputError("survey.probe-failed", path=str(program), detail=str(error)) from error
    return replace(profile, cpu=probe.applied(profile.cpu, outcome))
