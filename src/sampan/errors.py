"""The one tree of errors: what happened, what to do next, and the exit code.

A message is not text but a key of the catalogue (``data/messages/*.toml``) with its values, so the same error
speaks Chinese and English. Every key ``error.X`` has a companion ``hint.X`` that says what to do next.

Exit codes are stable and documented in ``docs/exit-codes.md``.
"""

from __future__ import annotations

from enum import IntEnum

from sampan import i18n


class ExitCode(IntEnum):
    """What the shell sees. Numbers never change meaning."""

    OK = 0
    INTERNAL = 1
    USAGE = 2
    BAD_INPUT = 3
    INCOMPATIBLE = 4
    MISSING_TOOL = 5
    NETWORK = 6
    BUILD_FAILED = 7
    FILESYSTEM = 8
    VERIFICATION_FAILED = 9
    REHEARSAL_FAILED = 10
    SERVICE = 11
    WARNINGS = 12  # no error class: only a verb that was asked to be strict ends with it
    BUSY = 13
    INTERRUPTED = 130


class SampanError(Exception):
    """Base of every error that a user is meant to read.

    ``key`` names the catalogue entry (``error.<key>`` and ``hint.<key>``); ``values`` fill its placeholders.
    """

    exit_code = ExitCode.INTERNAL

    def __init__(self, key: str, /, **values: object) -> None:
        super().__init__(key, values)
        self.key = key
        self.values = values
        self.stage: str | None = None  # set by the flow: the stage that was at work

    @property
    def message(self) -> str:
        """What happened, to which file or host, in the language in force."""
        return i18n.text(f"error.{self.key}", **self.values)

    @property
    def hint(self) -> str:
        """What to do next, in the language in force."""
        return i18n.text(f"hint.{self.key}", **self.values)

    def __str__(self) -> str:
        return f"{self.message} {self.hint}"


class UsageError(SampanError):
    """The command line asks for something that does not exist or does not go together."""

    exit_code = ExitCode.USAGE


class BadInputError(SampanError):
    """A file or folder that we were given is missing, damaged or not what it should be."""

    exit_code = ExitCode.BAD_INPUT


class IncompatibleError(SampanError):
    """The parts are sound, but they cannot run on that target."""

    exit_code = ExitCode.INCOMPATIBLE


class MissingToolError(SampanError):
    """This machine lacks a tool or a right that the step needs."""

    exit_code = ExitCode.MISSING_TOOL


class NetworkError(SampanError):
    """A registry or host could not be reached or answered wrongly."""

    exit_code = ExitCode.NETWORK


class BuildError(SampanError):
    """Compiler or build tool failed."""

    exit_code = ExitCode.BUILD_FAILED


class FilesystemError(SampanError):
    """No space, no permission, or the disk failed."""

    exit_code = ExitCode.FILESYSTEM


class VerificationError(SampanError):
    """A hash, size or signature is not the promised one."""

    exit_code = ExitCode.VERIFICATION_FAILED


class RehearsalError(SampanError):
    """The bundle did not prove itself in the emulated target."""

    exit_code = ExitCode.REHEARSAL_FAILED


class ServiceError(SampanError):
    """The installed service is not running, not ready or answers wrongly."""

    exit_code = ExitCode.SERVICE


class BusyError(SampanError):
    """Another sampan is changing the same thing just now."""

    exit_code = ExitCode.BUSY
