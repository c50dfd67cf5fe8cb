"""One file from one address into the store: resumed, retried, checked, renamed at the end."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from sampan import i18n
from sampan.disk import filesystem_errors
from sampan.edge.answer import PassingError, complete, judge, size_of, starts_at, total, validator
from sampan.edge.http import file_path, host_of, redacted
from sampan.edge.verify import Wanted, check, check_or_remove
from sampan.errors import NetworkError, VerificationError
from sampan.spec.ports import Progress, Task

_SHOW_ABOVE = 1 << 20  # bytes; smaller files come faster than a bar can be read


@dataclass
class _Attempt:
    """What one broken connection leaves for the next: the validator that says the file is still the same."""

    validator: str | None = None
    failures: int = 0
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Downloader:
    """``patience`` is the number of failures in a row without a new byte; ``pause`` the first wait in seconds.

    ``headers`` go to the first host only, not to where it redirects. ``again``: a wrong digest is tried once more.
    """

    client: httpx.Client
    progress: Progress
    patience: int = 5
    pause: float = 0.5
    sleep: Callable[[float], None] = time.sleep
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    again: bool = False

    def fetch(self, wanted: Wanted, final: Path) -> Path:
        """Download to ``final``. Raises NetworkError, VerificationError, FilesystemError.

        A part that an earlier run left beside it is continued, where a hash will prove the whole.
        """
        part = final.with_name(f".{final.name}.part")
        with filesystem_errors(final):
            final.parent.mkdir(parents=True, exist_ok=True)
            if not wanted.pinned:
                part.unlink(missing_ok=True)
            resumed = part.exists()
            self._bring(wanted, part)
            try:
                check(part, wanted)
            except VerificationError:
                part.unlink(missing_ok=True)
                if not (resumed or self.again):
                    raise
                self._bring(wanted, part)  # the old part may have been of another file: once more, whole
                check_or_remove(part, wanted)
            _sync(part)
            part.replace(final)
        return final

    def _bring(self, wanted: Wanted, part: Path) -> None:
        local = file_path(wanted.url)
        if local is not None:
            _copy(local, part, wanted)
            return
        with self._shown(wanted) as task:
            attempt = _Attempt()
            while True:
                before = size_of(part)
                try:
                    self._stream(wanted, part, attempt, task)
                    return
                except httpx.RequestError as error:
                    attempt.failures = 1 if size_of(part) > before else attempt.failures + 1
                    if attempt.failures >= self.patience:
                        raise offline(wanted, error) from error
                    wait = error.after if isinstance(error, PassingError) else 0.0
                self.sleep(max(wait, self.pause * 2 ** (attempt.failures - 1)))

    def _shown(self, wanted: Wanted) -> AbstractContextManager[Task | None]:
        if wanted.size is not None and wanted.size < _SHOW_ABOVE:
            return nullcontext()
        title = i18n.text("net.downloading", name=wanted.name)
        return self.progress.task(title, wanted.size)

    def _stream(self, wanted: Wanted, part: Path, attempt: _Attempt, task: Task | None) -> None:
        have = size_of(part)
        headers = {**self.headers, "Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
            if attempt.validator:
                headers["If-Range"] = attempt.validator
        with self.client.stream("GET", wanted.url, headers=headers) as answer:
            judge(answer, wanted, part)
            attempt.validator = validator(answer)
            appended = answer.status_code == httpx.codes.PARTIAL_CONTENT and starts_at(answer) == have
            have = have if appended else 0
            if task:
                task.update(completed=have, total=wanted.size or total(answer, have))
            with part.open("ab" if appended else "wb") as stream:
                for chunk in answer.iter_raw():  # as they come: what was received before a break counts
                    stream.write(chunk)
                    if task:
                        task.advance(len(chunk))
            complete(answer, part)


def _sync(part: Path) -> None:
    """A name must not outlive its content in a power cut."""
    with part.open("rb") as stream:
        os.fsync(stream.fileno())


def _copy(local: Path, part: Path, wanted: Wanted) -> None:
    if not local.is_file():
        raise NetworkError("net.not-found", url=redacted(wanted.url))
    shutil.copyfile(local, part)


def offline(wanted: Wanted, error: Exception) -> NetworkError:
    """The error for a host that does not answer."""
    detail = redacted_text(str(error), wanted.url) or type(error).__name__
    return NetworkError("net.offline", host=host_of(wanted.url), name=wanted.name, detail=detail)


def redacted_text(text: str, url: str) -> str:
    """``text`` without the secrets that ``url`` carries."""
    return text.replace(url, redacted(url))
