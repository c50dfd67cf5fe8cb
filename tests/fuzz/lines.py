"""Which lines of a package ran: what tells the fuzzer that an input did something new."""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import Any


class Lines:
    """Lines of files whose path has ``part`` in it. Code whose every line was seen is no longer followed, so the cost
    falls as the fuzzer goes on."""

    def __init__(self, part: str) -> None:
        self._part = part
        self._left: dict[CodeType, set[int]] = {}
        self.seen = 0
        self._fresh = 0

    def __enter__(self) -> Lines:
        self._fresh = 0
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        self.seen += self._fresh

    @property
    def fresh(self) -> int:
        """Lines that the last run saw first."""
        return self._fresh

    def _call(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        code = frame.f_code
        left = self._left.get(code)
        if left is None:
            own = self._part in code.co_filename
            left = {line for _, _, line in code.co_lines() if line} if own else set()
            self._left[code] = left
        return self._line if left else None

    def _line(self, frame: FrameType, event: str, _arg: Any) -> Any:
        left = self._left[frame.f_code]
        if event == "line" and frame.f_lineno in left:
            left.discard(frame.f_lineno)
            self._fresh += 1
        return self._line if left else None
